"""Problems of other collections as ops: text in, text out; nothing of a problem runs here.

`read_problem` makes a `Draft` of a file or a folder. A worker calls the draft's reference and finds
the shapes and kinds of values that it accepts; `Draft.finish` writes them as constants below the
problem, which stays as it is. `child/` has what that text imports in the worker.
"""

from triton_magics.problems.contract_cell import write_contract_op
from triton_magics.problems.draft import Draft
from triton_magics.problems.formats import FORMATS, read_problem, read_text
from triton_magics.problems.metric_formats import METRIC_FORMATS, TimedVersion
from triton_magics.problems.trace import read_back, write_definition

__all__ = [
    "FORMATS",
    "METRIC_FORMATS",
    "Draft",
    "TimedVersion",
    "read_back",
    "read_problem",
    "read_text",
    "write_contract_op",
    "write_definition",
]
