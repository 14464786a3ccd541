"""Measure what the timer adds to kernels that differ in one thing each, and to calls of ops.

Raw times in this process minus spans by CUPTI in another: a clock with one overhead for all gives
the same difference for every kernel. Beside it the same calls behind an empty kernel, which hides
the part of a launch that the GPU can prepare ahead.

    python tests/benchmarks/clock_factors.py [--json PATH] [--rounds 150]

About 60 s on an H200.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from by_cupti import profile_events, spans_us

OPS = ("softmax", "layer_norm", "sum", "vector_add", "cross_entropy", "attention", "matmul")
PLAIN, BEHIND = "plain", "behind an empty kernel"
PLACES = 16  # of an output
CHAINS = (1, 2, 4, 8)  # kernels in one call
sys.path += [str(Path(__file__).parents[2] / "scripts"), str(Path(__file__).parent / "kernels")]


def synthetic() -> dict[str, Callable[[], Any]]:
    """Return kernels that differ from the first in one thing."""
    import factor_kernels as kernels
    import torch

    pages = cycle(torch.zeros(PLACES, 2**22, device="cuda").unbind())
    source = torch.randn(2**22, device="cuda")
    args = {n: tuple(float(i) for i in range(n)) for n in (16, 128, 900)}
    calls: dict[str, Callable[[], Any]] = {
        "base": lambda: kernels.store[(128,)](next(pages), 512),
    }
    for grid in (1, 132, 264, 1056, 8192):
        calls[f"grid {grid}"] = lambda g=grid: kernels.store[(g,)](next(pages), 512)
    for n, values in args.items():
        calls[f"arguments {n}"] = lambda v=values: kernels.arguments[(128,)](next(pages), v, 512)
    for n in (8, 64, 512):
        calls[f"code {n}"] = lambda n=n: kernels.code[(128,)](next(pages), n, 512)
    for kib in (1, 32, 64, 128):
        calls[f"shared {kib} KiB"] = lambda k=kib: kernels.shared[(128,)](
            next(pages), k * 256, num_warps=4
        )
    for warps in (1, 8, 32):
        calls[f"warps {warps}"] = lambda w=warps: kernels.store[(128,)](
            next(pages), 512, num_warps=w
        )
    for blocks in (512, 4096):
        calls[f"copies {blocks * 4} KiB"] = lambda b=blocks: kernels.copy[(b,)](
            source, next(pages), 1024
        )
        calls[f"reads {blocks * 4} KiB"] = lambda b=blocks: kernels.read[(b,)](
            source, next(pages), 1024
        )
    calls["atomics 256"] = lambda: kernels.atomic[(256,)](next(pages))
    for n in CHAINS:
        calls[f"{n} kernels"] = lambda n=n: [
            kernels.store[(128,)](next(pages), 512) for _ in range(n)
        ]
    return calls


def in_graphs(calls: dict[str, Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """Return a CUDA graph of each call that launches several kernels."""
    import torch

    graphs: dict[str, Callable[[], Any]] = {}
    for name, call in calls.items():
        if "kernels" in name or "cross_entropy" in name:
            call()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                call()
            graphs[f"{name}, graph"] = graph.replay
    return graphs


def of_ops() -> dict[str, Callable[[], Any]]:
    """Return torch's call and the best version's of some ops, at small and medium."""
    import torch

    import op_texts
    from triton_magics import operators

    calls: dict[str, Callable[[], Any]] = {}
    for name in OPS:
        op = operators.load(name)
        version = op_texts.wrapper(name, op_texts.best(name))
        for size in ("small", "medium"):
            generator = torch.Generator("cuda").manual_seed(0)
            inputs = op.make_inputs(op.sizes[size], torch.float32, torch.device("cuda"), generator)
            calls[f"{name} torch {size}"] = lambda f=op.reference, x=inputs: f(*x)
            calls[f"{name} Triton {size}"] = lambda f=version, x=inputs: f(*x)
    return calls


def all_calls() -> dict[str, Callable[[], Any]]:
    """Return every call to measure."""
    calls = {**synthetic(), **of_ops()}
    return {**calls, **in_graphs(calls)}


def samples(
    calls: dict[str, Callable[[], Any]], rounds: int, clocks: tuple[str, ...]
) -> list[tuple[str, str, float]]:
    """Time every call by every clock in each of the rounds, in random order."""
    import torch

    from triton_magics import languages
    from triton_magics.harness.timers.gated_timer import GatedTimer, TimedCall

    empty, place = languages.instruments().empty, torch.zeros(1, device="cuda")

    def behind(act: Callable[[], Any]) -> Callable[[], Any]:
        def both() -> Any:
            empty(place)
            return act()

        return both

    timer = GatedTimer(torch.cuda.get_device_properties(0).L2_cache_size, cold=True)
    timed = {
        (name, clock): TimedCall(act if clock == PLAIN else behind(act), gate_key=(name, clock))
        for name, act in calls.items()
        for clock in clocks
    }
    order = random.Random(0)
    for call in timed.values():
        call.function()
        timer.time_once([call] * 3, range(3))
    results = []
    for _ in range(rounds):
        keys = list(timed)
        order.shuffle(keys)
        chosen = [timed[key] for key in keys]
        for key, attempt in zip(keys, timer.time_once(chosen, range(len(keys))), strict=True):
            results.append((*key, attempt.raw_us if attempt.reason is None else float("nan")))
    return results


def middle(values: list[float]) -> float:
    """Return the mean of the middle half of the valid values."""
    valid = sorted(v for v in values if v == v)
    cut = len(valid) // 4
    return statistics.fmean(valid[cut : len(valid) - cut])


def by_cupti(rounds: int) -> dict[str, Any]:
    """Return the span of each call by CUPTI, and its raw time with the profiler attached."""
    calls = all_calls()
    samples(calls, 1, (PLAIN,))  # compiles
    results: list[tuple[str, str, float]] = []

    def act() -> None:
        results.extend(samples(calls, rounds, (PLAIN,)))

    _, events = profile_events(act)
    spans = spans_us(events)[-len(results) :]
    result: dict[str, Any] = {}
    for name in calls:
        places = [i for i, sample in enumerate(results) if sample[0] == name]
        result[name] = {
            "span us": middle([spans[i] for i in places]),
            "raw us, profiled": middle([results[i][2] for i in places]),
        }
    return result


def main() -> None:
    """Measure, print a table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        options.child.write_text(json.dumps(by_cupti(options.rounds)))
        return
    started = time.time()
    path = Path(f"/tmp/clock_factors_{time.time_ns()}.json")
    command = [sys.executable, __file__, "--child", str(path), "--rounds", str(options.rounds // 3)]
    subprocess.run(command, check=True, timeout=120)
    cupti = json.loads(path.read_text())
    path.unlink()
    calls = all_calls()
    results = samples(calls, options.rounds, (PLAIN, BEHIND))
    series = [raw for name, clock, raw in samples({"base": calls["base"]}, 400, (PLAIN,))]
    rows = []
    for name in calls:
        row: dict[str, Any] = {"call": name, **cupti[name]}
        for clock in (PLAIN, BEHIND):
            raw = middle([r for n, c, r in results if (n, c) == (name, clock)])
            row[f"raw us, {clock}"] = raw
            row[f"added us, {clock}"] = raw - row["span us"]
        rows.append(row)
        print(
            f"{name:28} span {row['span us']:7.2f}  added {row[f'added us, {PLAIN}']:5.2f}"
            f"  behind {row[f'added us, {BEHIND}']:5.2f}"
            f"  profiled {row['raw us, profiled'] - row['span us']:5.2f}"
        )
    print(f"{time.time() - started:.0f} s")
    if options.json:
        body = {"rows": rows, "series of base, raw us": series}
        options.json.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
