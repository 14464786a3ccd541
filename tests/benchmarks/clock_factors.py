"""Measure what the timer adds to kernels that differ in one thing each, and to calls of ops.

Raw times in this process minus spans by CUPTI in another: a clock with one overhead for all gives
the same difference for every kernel. Beside it the same calls behind an empty kernel, which hides
the part of a launch that the GPU can prepare ahead.

    python tests/benchmarks/clock_factors.py [--json PATH] [--rounds 150]

About 60 s on an H200. With `--pairs` only the calls of ops, at three sizes: their net times, raw less
the timer's overhead as a benchmark calibrates it, beside CUPTI's spans. A call of several kernels is
timed as a CUDA graph of one call, because CUPTI lengthens the gaps between kernels; what a graph adds
to the overhead is measured with a graph of one kernel. Spans are compared twice: with net times of
the same calls, the profiler attached, and with those of another process without a profiler.
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

from by_cupti import NEAR, NEAR_US, profile_events, spans_us

SIZES = ("small", "medium", "large")
OPS = ("softmax", "layer_norm", "sum", "vector_add", "cross_entropy", "attention", "matmul")
PLAIN, BEHIND = "plain", "behind an empty kernel"
PLACES = 16  # of an output
CHAINS = (1, 2, 4, 8)  # kernels in one call
ONE, ONE_GRAPH = "one kernel", "one kernel, graph"  # their difference is what a graph adds
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


def in_graph(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return the replay of a CUDA graph of a call."""
    import torch

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()

    def replay(inputs: Any = call) -> None:  # the call holds the inputs, which the graph reads
        graph.replay()

    return replay


def in_graphs(calls: dict[str, Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """Return a CUDA graph of each call that launches several kernels."""
    return {
        f"{name}, graph": in_graph(call)
        for name, call in calls.items()
        if "kernels" in name or "cross_entropy" in name
    }


def of_ops(sizes: tuple[str, ...] = ("small", "medium")) -> dict[str, Callable[[], Any]]:
    """Return torch's call and the best version's of some ops at these sizes."""
    import torch

    import op_texts
    from triton_magics import operators

    calls: dict[str, Callable[[], Any]] = {}
    for name in OPS:
        op = operators.load(name)
        version = op_texts.wrapper(name, op_texts.best(name))
        for size in sizes:
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


def pairs(several: Callable[[str, Callable[[], Any]], bool]) -> dict[str, Callable[[], Any]]:
    """Return the ops' calls at three sizes; as a graph where `several` says so."""
    import factor_kernels as kernels
    import torch

    place = torch.zeros(2**20, device="cuda")

    def store() -> None:
        kernels.store[(128,)](place, 512)

    calls = {name: in_graph(c) if several(name, c) else c for name, c in of_ops(SIZES).items()}
    return {ONE: store, ONE_GRAPH: in_graph(store), **calls}


def overheads_us(added: float, results: list[tuple[str, str, float]]) -> tuple[float, float]:
    """Return the timer's overhead of a launch, and of a graph's."""
    one, graph = (middle([raw for n, _, raw in results if n == x]) for x in (ONE, ONE_GRAPH))
    return added, added + graph - one


def n_kernels(call: Callable[[], Any]) -> int:
    """Return how many kernels a call launches, by CUPTI."""
    call()
    _, events = profile_events(call)
    return len(events)


def by_cupti(rounds: int, *, of_pairs: bool = False) -> dict[str, Any]:
    """Return the span of each call by CUPTI, and its raw time with the profiler attached."""
    counts: dict[str, int] = {}

    def has_several(name: str, call: Callable[[], Any]) -> bool:
        counts[name] = n_kernels(call)
        return counts[name] > 1

    calls = pairs(has_several) if of_pairs else all_calls()
    samples(calls, 1, (PLAIN,))  # compiles
    results: list[tuple[str, str, float]] = []
    added: list[float] = []

    def act() -> None:
        if of_pairs:
            added.append(added_us())
        results.extend(samples(calls, rounds, (PLAIN,)))

    _, events = profile_events(act)
    spans = spans_us(events)[-len(results) :]
    result: dict[str, Any] = {}
    for name in calls:
        places = [i for i, sample in enumerate(results) if sample[0] == name]
        result[name] = {
            "span us": middle([spans[i] for i in places]),
            "raw us, profiled": middle([results[i][2] for i in places]),
            "kernels": counts.get(name, 1),
        }
    if of_pairs:
        overheads = overheads_us(added[0], results)
        for row in result.values():
            row["net us, profiled"] = row["raw us, profiled"] - overheads[row["kernels"] > 1]
    return result


def added_us() -> float:
    """Return the timer's overhead as a benchmark of this process subtracts it, microseconds."""
    from inprocess import Quiet

    from triton_magics.harness.process import device
    from triton_magics.harness.timers.gated_timer import GatedTimer
    from triton_magics.harness.timing.peak_rates import get_peak_rates

    here = device.create_context("gpu")
    rates = get_peak_rates(here, Quiet())
    assert rates is not None
    added = GatedTimer(here.l2_bytes, cold=True).calibrate(rates.cold).added_us
    assert added is not None
    return added


def is_near(net_us: float, span_us: float) -> bool:
    """Return whether a net time agrees with a span by CUPTI."""
    return abs(net_us - span_us) <= max(NEAR_US, NEAR * span_us)


def compare_pairs(cupti: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return the net times beside CUPTI's span, and how many are near."""
    added = added_us()
    calls = pairs(lambda name, call: cupti[name]["kernels"] > 1)
    results = samples(calls, rounds, (PLAIN,))
    overheads = overheads_us(added, results)
    rows = []
    for name in calls:
        if name in (ONE, ONE_GRAPH):
            continue
        span, same = cupti[name]["span us"], cupti[name]["net us, profiled"]
        raw = middle([raw for n, _, raw in results if n == name])
        net = raw - overheads[cupti[name]["kernels"] > 1]
        near = {"within": is_near(net, span), "same calls within": is_near(same, span)}
        rows.append({"call": name, **cupti[name], "net us": net, **near})
        marks = " ".join("" if ok else "<<<" for ok in near.values())
        print(
            f"{name:28} span {span:8.2f}  net {net:8.2f} {net - span:+.3f}"
            f"  of the same calls {same:8.2f} {same - span:+.3f} {marks}"
        )
    for key in ("within", "same calls within"):
        print(f"{key}: {sum(r[key] for r in rows)} of {len(rows)}")
    print(f"overhead {overheads[0]:.3f} us, of a graph {overheads[1]:.3f} us")
    return {"rows": rows, "calibrated us": overheads[0], "of a graph us": overheads[1]}


def main() -> None:
    """Measure, print a table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        figures = by_cupti(options.rounds, of_pairs=options.pairs)
        options.child.write_text(json.dumps(figures))
        return
    started = time.time()
    path = Path(f"/tmp/clock_factors_{time.time_ns()}.json")
    command = [sys.executable, __file__, "--child", str(path), "--rounds", str(options.rounds // 3)]
    command += ["--pairs"] * options.pairs
    subprocess.run(command, check=True, timeout=120)
    cupti = json.loads(path.read_text())
    path.unlink()
    if options.pairs:
        body = compare_pairs(cupti, options.rounds)
        if options.json:
            options.json.write_text(json.dumps(body, indent=1) + "\n")
        return
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
