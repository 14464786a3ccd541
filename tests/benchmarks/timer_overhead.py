"""Overhead of the gated timer, by how the call uses memory. Needs a GPU.

    python tests/benchmarks/timer_overhead.py [--json PATH] [--processes 4]

Raw times come from processes without a profiler. The spans of the same calls' kernels come from two
processes with a profiler, which also give the overhead there. A calibration kernel is right if its
overhead is that of softmax, vector_add and layer_norm.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from by_cupti import profile_events, spans_us
from common import report
from inprocess import OPS, right

ROUNDS = 50  # of all kernels, which take turns
WITH_PROFILER = 2
BUFFER_FLOATS = 2**24


def kernels(folder: Path) -> dict[str, Callable[[], object]]:
    """Return small kernels, and torch's and Triton's kernels of the ops at small and medium."""
    import torch
    from kernels import writing

    from triton_magics import operators
    from triton_magics.harness.load import load_version
    from triton_magics.harness.timers.gated_timer import tiny_kernels

    x, out = torch.zeros(2, BUFFER_FLOATS, device="cuda")
    acts: dict[str, Callable[[], object]] = {**tiny_kernels()}
    for blocks, block in ((1, 128), (128, 128), (1024, 512)):
        grid = (blocks,)
        acts |= {
            f"reads, {blocks}": lambda g=grid, b=block: writing.load_kernel[g](x, 1e9, BLOCK=b),
            f"writes, {blocks}": lambda g=grid, b=block: writing.store_kernel[g](x, BLOCK=b),
            f"copies, {blocks}": lambda g=grid, b=block: writing.copy_kernel[g](x, out, BLOCK=b),
        }
    for name in OPS:
        op, version = operators.load(name), load_version(right(folder, name))
        for rows in (256, 1024):
            generator = torch.Generator("cuda")
            inputs = op.make_inputs((rows, rows), torch.float32, torch.device("cuda"), generator)
            acts[f"{name}, torch, {rows}"] = lambda op=op, inputs=inputs: op.reference(*inputs)
            acts[f"{name}, Triton, {rows}"] = lambda v=version, inputs=inputs: v.call(*inputs)
    return acts


def measure(folder: Path, *, profiler: bool) -> dict[str, tuple[float, float | None]]:
    """Return each kernel's median raw time in this process and its span by CUPTI, microseconds."""
    import torch

    from triton_magics.harness.process.device import environment
    from triton_magics.harness.timers.gated_timer import GatedTimer, TimedCall

    acts = kernels(folder)
    for act in acts.values():
        act()
    torch.cuda.synchronize()
    timer = GatedTimer(environment().l2_bytes or 64 * 2**20, cold=True)
    calls = [TimedCall(act, gate_key=name) for name, act in acts.items()] * ROUNDS

    def run() -> list[float]:
        return [tried.raw_us for tried in timer.time_once(calls, range(len(calls)))]

    run()
    raw, events = profile_events(run) if profiler else (run(), [])
    spans = spans_us(events)
    assert len(spans) in (0, len(raw)), (len(spans), len(raw))
    n = len(acts)
    return {
        name: (
            statistics.median(raw[i::n]),
            statistics.median(spans[i::n]) if spans else None,
        )
        for i, name in enumerate(acts)
    }


def measure_in_child(folder: Path, *words: str) -> dict[str, Any]:
    """Return the measurements of a separate process."""
    command = [sys.executable, __file__, "--into", str(folder / "found.json"), *words]
    subprocess.run(command, check=True, timeout=120)
    results: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return results


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--into", type=Path, help="measure in this process alone, into this file")
    parser.add_argument("--profiler", action="store_true")
    options = parser.parse_known_args()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "cache"))
        if options.into:
            options.into.write_text(json.dumps(measure(folder, profiler=options.profiler)))
            return
        with_profiler = [measure_in_child(folder, "--profiler") for _ in range(WITH_PROFILER)]
        alone = [measure_in_child(folder) for _ in range(options.processes)]
    rows = []
    for name in alone[0]:
        span = statistics.fmean(one[name][1] for one in with_profiler)
        rows.append(
            {
                "kernel": name,
                "span us": span,
                **{f"added {i}": one[name][0] - span for i, one in enumerate(alone, 1)},
                **{
                    f"profiled {i}": one[name][0] - one[name][1]
                    for i, one in enumerate(with_profiler, 1)
                },
            }
        )
    report("What the timer adds, microseconds", rows)


if __name__ == "__main__":
    main()
