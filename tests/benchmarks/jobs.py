"""Overhead of a job: in a worker with loaded code, in a fresh worker, and without an engine.

    python tests/benchmarks/jobs.py [--json PATH]

To measure another source tree, put it first on PYTHONPATH and run this file from there.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable

from common import report

from triton_magics.lab import Lab

REPEATS = 40
SOURCE = "def triton_relu(x):\n    return x.relu()  # {}\n"


def timed(act: Callable[[], object], before: Callable[[], object] = lambda: None) -> list[float]:
    """Return the milliseconds of each of many calls."""
    times_ms = []
    for _ in range(REPEATS):
        before()
        start_s = time.perf_counter()
        act()
        times_ms.append(1e3 * (time.perf_counter() - start_s))
    return times_ms


def wait_for_standby(lab: Lab) -> None:
    """Wait for a warm worker, as it is ready while a user types."""
    deadline = time.monotonic() + 120
    while not lab.engine_state().standby_ready and time.monotonic() < deadline:
        time.sleep(0.005)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        versions = iter(["v1", "v2"] * (REPEATS + 1))

        def run(version: str) -> None:
            assert str(lab.run("relu", version, shape=(4, 4)).status) == "passed"

        for version in ("v1", "v2"):
            lab.write("relu", version, SOURCE.format(version), compile=False)
        start_s = time.perf_counter()
        run("v1")
        first = [1e3 * (time.perf_counter() - start_s)]
        same = timed(lambda: run("v1"))
        other = timed(lambda: run(next(versions)), lambda: wait_for_standby(lab))
        validated = timed(lambda: lab.validate("relu", "v1", shapes=[(4, 4)], dtypes=["float32"]))
        kind = lab.engine_state().device
    rows = [
        {"what": label, "median ms": statistics.median(ms), "min ms": min(ms), "max ms": max(ms)}
        for label, ms in (
            ("the first job of an engine", first),
            ("a job whose code the worker has", same),
            ("a job with other code, a standby ready", other),
            ("a validation of one small case", validated),
        )
    ]
    report(f"A job on {kind}", rows, repeats=REPEATS)


if __name__ == "__main__":
    main()
