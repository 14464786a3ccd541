"""Measure what the sandbox costs: the warm first run of a new version, with it and without it.

    python tests/benchmarks/sandbox.py --runs 20 --into sandbox.json

The runs with and without it alternate, and the ratio of their medians is printed.
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
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, wait_until
from tests.faults.engine.fault_lab import RIGHT, FaultLab

MODES = ("off", "on")


def measure(runs: int, device: str) -> dict[str, object]:
    """Return the seconds of each mode, and the ratio of the medians."""
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    with ExitStack() as stack:
        labs = {mode: start(mode, device, stack) for mode in MODES}
        for number in range(runs):
            for mode in MODES if number % 2 else MODES[::-1]:
                seconds[mode].append(run_new_version(labs[mode], number))
    medians = {mode: statistics.median(values) for mode, values in seconds.items()}
    ratio = medians["on"] / medians["off"]
    return {"seconds": seconds, "median_s": medians, "ratio": round(ratio, 3)}


def start(mode: str, device: str, stack: ExitStack) -> FaultLab:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    lab = FaultLab(Path(folder), os.environ[PROCESS_TAG], device, sandbox=mode)
    stack.callback(lab.lab.close)
    return lab


def run_new_version(faults: FaultLab, number: int) -> float:
    faults.lab.write("relu", "v1", f"{RIGHT}# {number}\n", compile=False)
    wait_until(faults.ready, within_s=120)
    start_s = time.perf_counter()
    result = faults.lab.run("relu", "v1", shape=(4, 4))
    assert result.status == "passed", result
    return time.perf_counter() - start_s


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
    print(json.dumps({"median_s": figures["median_s"], "ratio": figures["ratio"]}))
    if options.into:
        options.into.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
