"""Duration of a sweep of 32 configurations of softmax, by step.

    python tests/benchmarks/sweep.py [--json PATH] [--repeats 3]

Each repeat sweeps a source that was never compiled before, with a warm standby worker. Without a GPU the
configurations are only compiled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from common import report

from triton_magics import rendering
from triton_magics.lab import Lab

KNOBS = {"BLOCK_SIZE": (256, 512, 1024, 2048), "num_warps": (1, 2, 4, 8), "NUM_STAGES": (1, 2)}
KERNEL = Path(__file__).parent / "kernels" / "softmax_two_passes.py"


def variant(i: int) -> str:
    """Return a softmax that was never compiled before."""
    return KERNEL.read_text().replace(
        "tl.exp(x - new)", f"tl.exp(x - new - {i + time.time() % 1:.9f}e-30)"
    )


def wait_for_standby(lab: Lab) -> None:
    """Wait for a warm worker, as it is ready while a user types."""
    lab.status()
    deadline = time.monotonic() + 120
    while not lab.engine_state().standby_ready and time.monotonic() < deadline:
        time.sleep(0.05)


def once(lab: Lab, i: int) -> tuple[float, Any]:
    """Run a sweep; return its seconds and its value."""
    lab.write("softmax", f"v{i + 1}_swept", variant(i), compile=False)
    wait_for_standby(lab)
    start_s = time.perf_counter()
    sweep = lab.sweep("softmax", f"v{i + 1}", KNOBS)
    rendering.bundle(sweep)
    return time.perf_counter() - start_s, sweep


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_known_args()[0].repeats
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        lab.op("softmax")
        runs = [once(lab, i) for i in range(repeats + 1)][1:]  # the first measures the machine
        device = lab.engine_state().device
    print(rendering.to_text(rendering.view(runs[-1][1]), width=160))
    steps = [{"all": wall, **sweep.steps_s} for wall, sweep in runs]
    rows = [
        {
            "what": name,
            "median s": statistics.median(s[name] for s in steps),
            "max s": max(s[name] for s in steps),
        }
        for name in steps[0]
    ]
    n = len(runs[-1][1].configurations)
    best = runs[-1][1].best
    report(
        f"{n} configurations of softmax on {device}, {os.cpu_count()} cores",
        rows,
        repeats=repeats,
        best=best.label if best else None,
        best_us=best.timing.mean_us if best and best.timing else None,
    )


if __name__ == "__main__":
    main()
