"""Tell whether the code that called a magic shows or keeps its value."""

from __future__ import annotations

import dis
import sys
from types import FrameType

_DISPLAYING = ("PRINT_EXPR", "CALL_INTRINSIC_1")  # until Python 3.11, and since
_CALLERS = ("run_line_magic", "run_cell_magic")  # functions of IPython's shell


def is_value_discarded() -> bool:
    """Return True if the running magic is a statement whose value Python drops.

    IPython shows the value of a cell's last line only. A magic in a loop, in a function or above
    the last line gives a value that nobody sees.
    """
    frame = _calling_frame()
    return frame is not None and _next_operation(frame) == "POP_TOP"


def is_value_displayed() -> bool:
    """Return True if the running magic is the expression of a cell that IPython shows."""
    frame = _calling_frame()
    return frame is not None and _next_operation(frame) in _DISPLAYING


def _calling_frame() -> FrameType | None:
    """Return the frame of the cell that called the magic; None if IPython did not call it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name not in _CALLERS:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_name in (*_CALLERS, "magic"):
        frame = frame.f_back
    return frame


def _next_operation(frame: FrameType) -> str | None:
    """Return the name of the operation after the one that runs."""
    following = (i.opname for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti)
    return next(following, None)
