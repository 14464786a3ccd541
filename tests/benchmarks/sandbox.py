"""Measure what the sandbox and the filter of signals cost, beside workers without them.

    python tests/benchmarks/sandbox.py --runs 20 --into sandbox.json

Three ways to confine a worker alternate: nothing, the filter that every worker has, the sandbox with
the filter. Of each: the first run of a new version on a warm worker, a validation of one shape, and the
start of the workers that replace the used one. The ratios are of the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, wait_until
from tests.faults.engine.fault_lab import RIGHT, FaultLab
from tests.faults.next_job import all_ready

MODES = ("nothing", "filter", "sandbox")
SOURCE = RIGHT.replace("    out =", "    x = x.contiguous()\n    out =").replace(
    "tl.maximum(x, 0.0)", "tl.where(x < 0.0, 0.0, x)"
)
# Imported by each process of its executor at its start.
WITHOUT_FILTER = """
import sys

if "triton_magics.harness" in sys.orig_argv:
    from triton_magics.execution import seccomp

    seccomp.refuse_signals = lambda pids: None
"""


def measure(runs: int, device: str) -> dict[str, Any]:
    """Return the seconds of each action and mode, their medians and the ratios of those."""
    seconds: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        labs = {mode: start(mode, device, stack) for mode in MODES}
        for lab in labs.values():
            act(lab, runs)  # fills caches
        for number in range(runs):
            for mode in MODES if number % 2 else MODES[::-1]:
                for action, took_s in act(labs[mode], number):
                    seconds.setdefault(action, {m: [] for m in MODES})[mode].append(took_s)
    medians = {
        action: {mode: statistics.median(values) for mode, values in by_mode.items()}
        for action, by_mode in seconds.items()
    }
    ratios = {
        action: {mode: median_ratio(by_mode[mode], by_mode["nothing"]) for mode in MODES[1:]}
        for action, by_mode in seconds.items()
    }
    return {"seconds": seconds, "median_s": medians, "ratio": ratios}


def median_ratio(values: list[float], others: list[float]) -> float:
    """Return the median of the ratios of what ran in the same round, under the same load."""
    return round(statistics.median(a / b for a, b in zip(values, others, strict=True)), 3)


def start(mode: str, device: str, stack: ExitStack) -> FaultLab:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (folder / "sitecustomize.py").write_text(WITHOUT_FILTER)
    if mode == "nothing":
        os.environ["PYTHONPATH"] = str(folder)
    sandbox = "on" if mode == "sandbox" else "off"
    lab = FaultLab(folder, os.environ[PROCESS_TAG], device, sandbox=sandbox)
    stack.callback(lab.lab.close)
    wait_until(lambda: all_ready(lab), within_s=120)
    os.environ.pop("PYTHONPATH", None)
    assert is_filtered(lab) == (mode != "nothing")
    return lab


def is_filtered(faults: FaultLab) -> bool:
    """Return whether a worker has a filter of system calls (proc(5): Seccomp)."""
    pool: Any = faults.pool
    status = Path(f"/proc/{max(pool.pids)}/status").read_text()
    return "Seccomp:\t2" in status


def act(faults: FaultLab, number: int) -> list[tuple[str, float]]:
    """Do the three actions with a new version; return the seconds of each."""
    lab = faults.lab
    lab.write("relu", "v1", f"{SOURCE}# {number}\n", compile=False)
    wait_until(lambda: all_ready(faults), within_s=120)
    run_s = time_passing(lambda: lab.run("relu", "v1", shape=(4, 4)))
    start_s = time_call(lambda: wait_until(lambda: all_ready(faults), within_s=120))
    validate_s = time_passing(lambda: lab.validate("relu", "v1", shapes=[(64, 64)], seed=number))
    return [("run", run_s), ("start", start_s), ("validate", validate_s)]


def time_passing(call: Callable[[], Any]) -> float:
    """Return the seconds of a call whose verdict is right."""
    results: list[Any] = []
    seconds = time_call(lambda: results.append(call()))
    assert results[0].status == "passed", results
    return seconds


def time_call(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    os.environ[PROCESS_TAG] = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_MAGICS_CACHE"] = cache
        figures = measure(options.runs, options.device)
    print(json.dumps({"median_s": figures["median_s"], "ratio": figures["ratio"]}, indent=1))
    if options.into:
        options.into.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
