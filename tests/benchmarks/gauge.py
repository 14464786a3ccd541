"""What the gated timer adds to a call, by what the call does with memory. Needs a GPU.

    python tests/benchmarks/gauge.py [--json PATH] [--processes 4]

Raw times come from processes without a profiler, the spans of the same calls' kernels, which are
taken from them, from two processes with one; in those also what it adds there. A timer is gauged
rightly by a kernel to which it adds what it adds to softmax, vector_add and layer_norm.
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

from by_cupti import profiled, spans_us
from common import report
from inprocess import OPS, right

ROUNDS = 50  # of all kernels, which take turns
WITH_PROFILER = 2
BUFFER_FLOATS = 2**24


def kernels(folder: Path) -> dict[str, Callable[[], object]]:
    """Small kernels, and the ops' at small and medium, torch's and Triton's."""
    import torch
    from kernels import writing

    from triton_magics import ops
    from triton_magics.worker.load import load_version
    from triton_magics.worker.timers import tiny_kernels

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
        op, version = ops.load(name), load_version(right(folder, name))
        for rows in (256, 1024):
            generator = torch.Generator("cuda")
            made = op.make_inputs((rows, rows), torch.float32, torch.device("cuda"), generator)
            acts[f"{name}, torch, {rows}"] = lambda op=op, made=made: op.reference(*made)
            acts[f"{name}, Triton, {rows}"] = lambda v=version, made=made: v.call(*made)
    return acts


def measured(folder: Path, *, profiler: bool) -> dict[str, tuple[float, float | None]]:
    """Each kernel's median raw time in this process, and its span by CUPTI, microseconds."""
    import torch

    from triton_magics.worker.resources import environment
    from triton_magics.worker.timers import Call, GatedTimer

    acts = kernels(folder)
    for act in acts.values():
        act()
    torch.cuda.synchronize()
    timer = GatedTimer(environment().l2_bytes or 64 * 2**20, cold=True)
    calls = [Call(act, of=name) for name, act in acts.items()] * ROUNDS

    def run() -> list[float]:
        return [tried.raw_us for tried in timer.tries(calls, range(len(calls)))]

    run()
    raw, events = profiled(run) if profiler else (run(), [])
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


def another(folder: Path, *words: str) -> dict[str, Any]:
    """What a process of its own has measured."""
    command = [sys.executable, __file__, "--into", str(folder / "found.json"), *words]
    subprocess.run(command, check=True, timeout=120)
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--into", type=Path, help="measures in this process alone")
    parser.add_argument("--profiler", action="store_true")
    given = parser.parse_known_args()[0]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ.setdefault("TRITON_CACHE_DIR", str(folder / "cache"))
        if given.into:
            given.into.write_text(json.dumps(measured(folder, profiler=given.profiler)))
            return
        seen = [another(folder, "--profiler") for _ in range(WITH_PROFILER)]
        alone = [another(folder) for _ in range(given.processes)]
    rows = []
    for name in alone[0]:
        span = statistics.fmean(one[name][1] for one in seen)
        rows.append(
            {
                "kernel": name,
                "span us": span,
                **{f"added {i}": one[name][0] - span for i, one in enumerate(alone, 1)},
                **{f"profiled {i}": one[name][0] - one[name][1] for i, one in enumerate(seen, 1)},
            }
        )
    report("What the timer adds, microseconds", rows)


if __name__ == "__main__":
    main()
