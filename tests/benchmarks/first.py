"""First use: the waits of a user from the first look at an op to the first verdict.

Each repeat starts new, cold processes: look, type for some seconds, write, validate.

    python tests/benchmarks/first.py [--json PATH]
"""

from __future__ import annotations

import tempfile
import time
from typing import Any

from common import report
from loop import variant

from triton_magics.lab import Lab

TYPING_S = (0.0, 10.0)


def first(typing_s: float, i: int) -> dict[str, Any]:
    """Return the seconds of each wait."""
    marks = []
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        marks.append(time.perf_counter())
        lab.op("softmax")
        marks.append(time.perf_counter())
        time.sleep(typing_s)
        start = time.perf_counter()
        lab.write("softmax", "v1", variant(i))
        written = time.perf_counter()
        validation: Any = lab.validate("softmax", "v1", plan="quick")
        assert validation.passed, validation
        judged = time.perf_counter()
        device = lab.engine_state().device
    return {
        "typing s": typing_s,
        "look s": marks[1] - marks[0],
        "write s": written - start,
        "validate --quick s": judged - written,
        "waited s": marks[1] - marks[0] + judged - start,
        "on": device,
    }


def main() -> None:
    """Print the table."""
    rows = [first(typing_s, i) for i, typing_s in enumerate(TYPING_S)]
    report("First use", rows)


if __name__ == "__main__":
    main()
