"""Verdicts on a kernel against itself and against one that is 3 % slower, on a GPU."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inprocess import bench, right, version

SPINS = (9_000, 20_000, 80_000)  # cycles: raw times of about 8, 14 and 44 us on an H200
SLOWER = 0.03
NAMES = 16  # of one source
PAIRS = 13  # of versions; each comparison is of two neighbours
BUDGET_S = 60.0  # of a benchmark, as a notebook's
VERDICTS = ("faster", "slower", "same", "undecided")
SLOWER_VERDICTS = ("found", "same", "undecided", "wrong way")
SPINNING = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n_elements, alpha, SPIN: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)
    now = start
    while now - start < SPIN:
        now = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)

def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty_like(x)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, alpha, SPIN={spin}, BLOCK=1024)
    return out
"""


def against_itself(
    folder: Path,
    benchmarks: int,
    deadline: float,
    on_rows: Callable[[list[Any]], None],
    runs: Path | None,
) -> list[dict[str, Any]]:
    """Compare one source under many names; each neighbouring pair compares a kernel with itself."""
    counts: dict[str, Counter[str]] = {}
    rounds: dict[str, list[int]] = {}
    rows: list[dict[str, Any]] = []
    for i in range(benchmarks):
        op = ("softmax", "vector_add")[i % 2]
        names = [f"v{n}_same" for n in range(1, NAMES + 1)]
        refs = tuple(right(folder, op, name) for name in names)
        benchmark = bench(op, refs, seed=1000 + i, budget=BUDGET_S)
        keep_runs(runs, op, benchmark)
        for comparison in neighbours(benchmark, names):
            counts.setdefault(comparison.size, Counter())[comparison.verdict] += 1
            rounds.setdefault(comparison.size, []).append(comparison.rounds)
        rows = [verdict_row(f"itself, {size}", counts[size], rounds[size]) for size in counts]
        whole = sum(counts.values(), Counter())
        rows.append(verdict_row("itself, all", whole, [n for r in rounds.values() for n in r]))
        on_rows(rows)
        if time.monotonic() > deadline:
            break
    return rows


def keep_runs(path: Path | None, op: str, benchmark: Any) -> None:
    """Append the net times of all runs to a JSON Lines file, microseconds."""
    if path is None:
        return
    times = [(t.size, t.provider, t.calls, t.samples_us + t.extra_us) for t in benchmark.timings]
    with path.open("a") as lines:
        lines.write(json.dumps({"op": op, "tick us": benchmark.tick_us, "runs": times}) + "\n")


def against_slower(folder: Path, benchmarks: int) -> list[dict[str, Any]]:
    """Compare versions whose kernels alternately do 3 % more work, at three durations."""
    rows = []
    for spin in SPINS:
        one, twice = (spinning(folder, f"v{n}_spin", n * spin) for n in (1, 2))
        trial = bench("vector_add", (one, twice), seed=7, sizes=("small",), budget=0.0)
        net = trial.timing("v1_spin", "small").median_us
        per_us = spin / (trial.timing("v2_spin", "small").median_us - net)
        cycles = (spin, round(spin + SLOWER * net * per_us))
        names = [f"v{n}_{('spin', 'slower')[n % 2]}" for n in range(PAIRS + 1)][1:]
        refs = tuple(spinning(folder, name, cycles["slower" in name]) for name in names)
        counts, rounds, ratios, thresholds = Counter(), [], [], []
        for i in range(benchmarks):
            benchmark = bench("vector_add", refs, seed=2000 + i, sizes=("small",))
            for comparison in neighbours(benchmark, names):
                slow = "slower" in comparison.candidate
                is_right = comparison.verdict == ("slower" if slow else "faster")
                open_ones = comparison.verdict in ("same", "undecided")
                counts[
                    "found" if is_right else comparison.verdict if open_ones else "wrong way"
                ] += 1
                rounds.append(comparison.rounds)
                thresholds.append(comparison.threshold)
                ratios.append(comparison.ratio if slow else 1 / comparison.ratio)
        raw = statistics.median(benchmark.timing(names[1], "small").raw_us)
        row = verdict_row(f"3 % slower at {raw:.1f} us raw", counts, rounds, SLOWER_VERDICTS)
        spread = {"median ratio": statistics.median(ratios), "largest threshold": max(thresholds)}
        rows.append({**row, **spread})
    return rows


def neighbours(benchmark: Any, names: list[str]) -> list[Any]:
    """Return the comparisons of each version with its predecessor."""
    pairs = set(zip(names[1:], names, strict=False))
    return [c for c in benchmark.comparisons if (c.candidate, c.baseline) in pairs]


def spinning(folder: Path, name: str, cycles: int) -> Any:
    """Return an addition of at least so many cycles."""
    return version(folder, "vector_add", name, SPINNING.replace("{spin}", str(cycles)))


def verdict_row(
    label: str, counts: Counter[str], rounds: list[int], verdicts: tuple[str, ...] = VERDICTS
) -> dict[str, Any]:
    """Return how often each verdict occurred, and the number of rounds."""
    return {
        "what": label, "comparisons": counts.total(), **{w: counts[w] for w in verdicts},
        "mean rounds": statistics.fmean(rounds), "most rounds": max(rounds),
    }  # fmt: skip
