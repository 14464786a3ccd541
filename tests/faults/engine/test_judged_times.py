"""A version that tampers with clocks has no time, and a right one beside it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_magics.lab import Lab
from triton_magics.model import Status

SOURCE = (
    Path(__file__).parents[1] / "kernels" / "classes" / "judge" / "softmax_namesake.py"
).read_text()
FAST_CLOCK = '''
import time, traceback
original, now = triton_softmax, time.perf_counter

def triton_softmax(x):
    if any("timing" in frame.filename for frame in traceback.extract_stack()):
        time.perf_counter = lambda: 1e-3 * now()
    return original(x)
'''  # fmt: skip


@pytest.mark.parametrize(("tail", "status"), [("", Status.PASSED), (FAST_CLOCK, Status.FAILED)])
def test_a_patched_clock_gives_no_time(tmp_path: Path, tail: str, status: Status) -> None:
    with Lab(tmp_path) as lab:
        lab.write("softmax", "v1_namesake", SOURCE + tail, compile=False)
        assert lab.validate("softmax", "v1", plan="quick", dtypes=("float32",)).passed
        timed = lab.bench("softmax", "v1", sizes=("small",), runs=2, budget=20)
        assert timed.status is status, timed.message
        assert ("perf_counter" in str(timed.message)) == bool(tail)
