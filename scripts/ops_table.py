"""Tabulate the measurements of the ops' notebooks, from their events: sentences and one table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from triton_magics import knowledge, roofline
from triton_magics.model import Benchmark, Timing, shape_text, short
from triton_magics.rendering.numbers import (
    flops_text,
    percent_text,
    rate_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.views.badges import badge_labels

COMPILE = "torch.compile"
DTYPES = ("float32", "bfloat16")
COPY_GOAL_PCT = 90.0
ABOUT = """\
The version of each op that its [notebook](../../notebooks) calls its best: for attention v8, the fastest in
bfloat16; in float32 it equals v5, which `%triton_best` chose. torch.compile runs in its default mode and is
compiled for each shape and dtype. Times are GPU times with cold caches, without the overhead of the timer
([how](../timing.md)); the verdicts are the benchmark's own. A speedup over 1 is in favour of the Triton kernel.
At its own shapes gqa was timed with the mask in some calls, and torch at 16,384 keys in all: those means and
rates are of two works, which its [notebook](../../notebooks/gqa.ipynb) has apart."""
COMMAND = "make ops"


@dataclass(frozen=True)
class Against:
    """A version beside a baseline at one size: times in us, > 1 is faster, the verdict."""

    us: float
    speedup: float
    verdict: str


@dataclass(frozen=True)
class Row:
    """The compared version of an op at one size, beside torch and torch.compile.

    `copy_pct` is the share of the copy bandwidth measured on the same card; None where the op is
    not bound by memory. A baseline that could not be timed is None.
    """

    op: str
    version: str
    dtype: str
    size: str
    shape: tuple[int, ...]
    us: float
    torch: Against | None
    compile: Against | None
    gbps: float | None
    copy_pct: float | None
    tflops: float | None
    launch_bound: bool

    @property
    def worst(self) -> float:
        """The speedup over the faster of the two."""
        speedups = [a.speedup for a in (self.torch, self.compile) if a]
        return min(speedups, default=1.0)

    @property
    def slower(self) -> bool:
        """Return True if the benchmark calls it slower than one of the two."""
        return any(a.verdict == "slower" for a in (self.torch, self.compile) if a)


# -------------------------------------------------------------------------------------- logs


def benchmarks(log: Path) -> list[Benchmark]:
    """Return the benchmarks of an op's log that ran on a GPU, oldest first."""
    results = [Benchmark.model_validate(event["result"]) for event in _benchmark_events(log)]
    return [b for b in results if b.clock == "gpu" and b.passed]


def dates(logs: Path) -> str:
    """Return the days of the logs' benchmarks: `2026-11-21`."""
    days = {
        e["time"][:10] for log in sorted(logs.glob("*_log.jsonl")) for e in _benchmark_events(log)
    }
    return ", ".join(sorted(days))


def _benchmark_events(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["verb"] == "benchmarked":
            yield event


def newest_comparison(benchmarks: Sequence[Benchmark], dtype: str) -> Benchmark | None:
    """Return the newest benchmark in a dtype that includes torch.compile."""
    hits = [b for b in _beside_compile(benchmarks) if b.dtype == dtype and "large" in b.sizes]
    return hits[-1] if hits else None


def of_own_shapes(benchmarks: Sequence[Benchmark]) -> list[Benchmark]:
    """Return the benchmarks with torch.compile and with none of the three sizes."""
    return [b for b in _beside_compile(benchmarks) if not {"small", "medium", "large"} & {*b.sizes}]


def _beside_compile(benchmarks: Sequence[Benchmark]) -> list[Benchmark]:
    return [b for b in benchmarks if COMPILE in b.providers]


def rows(benchmark: Benchmark, version: str) -> Iterator[Row]:
    """Return a row for each size of a version; none if the version was not timed."""
    timed = short(version) in {short(v) for v in benchmark.versions}
    for size in benchmark.sizes if timed else ():
        if timing := benchmark.timing(version, size):
            yield _row(benchmark, version, timing)


def _row(b: Benchmark, version: str, timing: Timing) -> Row:
    memory_bound = knowledge.facts(b.op).bound == "memory"
    copied = roofline.share_pct(timing.gbps, b.copy_gbps) if memory_bound else None
    return Row(
        op=b.op,
        version=short(version),
        dtype=b.dtype,
        size=timing.size,
        shape=timing.shape,
        us=timing.mean_us,
        torch=against(b, version, "torch", timing.size),
        compile=against(b, version, COMPILE, timing.size),
        gbps=timing.gbps,
        copy_pct=copied,
        tflops=timing.tflops,
        launch_bound=roofline.launch_bound(timing.mean_us, b.floor_us),
    )


def against(b: Benchmark, version: str, baseline: str, size: str) -> Against | None:
    """Return a version beside a baseline at one size; None if the baseline was not timed."""
    if baseline not in b.providers or not (timed := b.timing(baseline, size)):
        return None
    speedup = b.size_speedup(version, size, baseline)
    assert speedup is not None
    comparison = b.comparison(version, size, baseline)
    return Against(timed.mean_us, speedup, comparison.verdict if comparison else "undecided")


# ------------------------------------------------------------------------- in the notebooks


def cell_text(subject: str, benchmarks: Sequence[Benchmark]) -> str | None:
    """Return the text of a notebook's cell, for `v2` or `compare v4`; None without GPU times."""
    kind, _, version = subject.rpartition(" ")
    compared = [b for dtype in DTYPES if (b := newest_comparison(benchmarks, dtype))]
    lines = [row for b in compared for row in rows(b, version)]
    if not lines:
        return None
    return _comparison(lines, compared) if kind == "compare" else _measurement(lines, compared[0])


def _measurement(rows: Sequence[Row], b: Benchmark) -> str:
    assert b.environment is not None
    by_dtype = [
        f"{dtype}: " + "; ".join(f"{r.size} {_figures(r)}" for r in rows if r.dtype == dtype)
        for dtype in dict.fromkeys(r.dtype for r in rows)
    ]
    head = f"**Measured** beside all versions (below), {b.environment.device}, caches cold."
    return "\n".join([head, "", *(f"- {line}." for line in by_dtype)])


def _figures(row: Row) -> str:
    """Return `30.5 us, 1.76x torch (faster), 4.40 TB/s, 104 % of a copy`."""
    parts = [time_text(row.us)]
    if row.torch:
        parts.append(f"{ratio_text(row.torch.speedup)} torch ({row.torch.verdict})")
    return ", ".join([*parts, *([rate] if (rate := _rate(row)) else [])])


def _rate(row: Row) -> str:
    if row.launch_bound:
        return "under what an empty kernel takes"
    if row.copy_pct is not None and row.gbps:
        return f"{rate_text(row.gbps)}, {percent_text(row.copy_pct)} of a copy"
    return flops_text(row.tflops) if row.tflops else ""


def _comparison(rows: Sequence[Row], benchmarks: Sequence[Benchmark]) -> str:
    b = benchmarks[0]
    assert b.environment is not None
    head = f"**{b.op} {rows[0].version}** on {b.environment.line}; GPU time, caches cold."
    everyone = "All of them, with the verdict beside torch:"
    parts = [head, table(rows, with_op=False), *_summary(rows), everyone, all_versions(benchmarks)]
    return "\n\n".join(parts)


def all_versions(benchmarks: Sequence[Benchmark]) -> str:
    """Return a Markdown table: a line for each version and baseline, a column a dtype and size."""
    columns = [(b, size) for b in benchmarks for size in b.sizes]
    providers = dict.fromkeys(provider for b in benchmarks for provider in b.providers)
    head = ["", *(f"{b.dtype} {size}" for b, size in columns)]
    lines = [[short(p), *(_cell(b, p, size) for b, size in columns)] for p in providers]
    return _markdown([head, ["---"] * len(head), *lines])


def _cell(b: Benchmark, provider: str, size: str) -> str:
    """Return `30.5 us faster`."""
    timing = b.timing(provider, size)
    comparison = b.comparison(provider, size, "torch") if provider in b.versions else None
    verdict = [comparison.verdict] if comparison else []
    return " ".join([time_text(timing.mean_us if timing else None), *verdict])


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the geometric means, and each row that misses the goal, with the distance."""
    yield _means(rows)
    for row in rows:
        if row.slower:
            place = f"{row.op} {row.dtype} {row.size}"
            yield f"Short of the goal: {place} takes {1 / row.worst:.2f} times the fastest."
        if row.size == "large" and row.copy_pct is not None and row.copy_pct < COPY_GOAL_PCT:
            yield (
                f"Short of the goal: {row.op} {row.dtype} large reaches {row.copy_pct:.1f} % of a "
                f"copy's bandwidth, not {COPY_GOAL_PCT:.0f} %."
            )


def _means(rows: Sequence[Row]) -> str:
    over_torch = [r.torch.speedup for r in rows if r.torch]
    over_compile = [r.compile.speedup for r in rows if r.compile]
    means = [
        f"{ratio_text(statistics.geometric_mean(speedups))} over {name}"
        for name, speedups in (("torch", over_torch), (COMPILE, over_compile))
        if speedups
    ]
    return f"Geometric mean: {', '.join(means)}."


# -------------------------------------------------------------------------------- the table


def table(rows: Sequence[Row], *, with_op: bool = True) -> str:
    """Return a Markdown table with a line for each row."""
    names = (*(("op",) if with_op else ()), "dtype", "size", "shape", "version", "torch", COMPILE)
    head = [*names, "over torch", f"over {COMPILE}", "rate"]
    return _markdown([head, ["---"] * len(head), *(_line(row, with_op=with_op) for row in rows)])


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(row: Row, *, with_op: bool) -> list[str]:
    pair = (row.torch, row.compile)
    return [
        *([f"{row.op} {row.version}"] if with_op else []),
        row.dtype,
        row.size,
        shape_text(row.shape),
        time_text(row.us),
        *(time_text(a.us if a else None) for a in pair),
        *(f"{ratio_text(a.speedup)} {a.verdict}" if a else "—" for a in pair),
        _rate(row),
    ]


# ------------------------------------------------------------------------------------- files


def comparisons_in(logs: Path, best: Mapping[str, str]) -> list[tuple[Benchmark, str]]:
    """Return the comparisons of every op with its best version, in the ops' order.

    Args:
        logs: the folder of the ops' logs.
        best: op -> its best version.
    """
    comparisons: list[tuple[Benchmark, str]] = []
    for op in knowledge.op_names():
        log = logs / f"{op}_log.jsonl"
        if op in best and log.is_file():
            own = benchmarks(log)
            comparisons += [
                (b, best[op]) for dtype in DTYPES if (b := newest_comparison(own, dtype))
            ]
            comparisons += [(b, best[op]) for b in of_own_shapes(own)]
    return comparisons


def page(
    comparisons: Sequence[tuple[Benchmark, str]],
    when: str,
    best: Mapping[str, str],
    sections: Sequence[str] = (),
) -> str:
    """Return docs/measured/ops.md.

    Args:
        comparisons: each benchmark with its op's best version.
        when: the days.
        best: op -> its best version.
        sections: Markdown of other measurements.
    """
    all_rows = [row for b, version in comparisons for row in rows(b, version)]
    memory = [row for row in all_rows if row.copy_pct is not None]
    rest = [row for row in all_rows if row.copy_pct is None]
    parts = [
        "# Every op beside torch and torch.compile",
        _where([b for b, _ in comparisons], when),
        ABOUT,
        *_badges([b for b, _ in comparisons]),
    ]
    for title, part in (("Bound by memory", memory), ("Bound by arithmetic", rest)):
        if part:
            parts += [f"## {title}", "\n".join(f"- {s}" for s in _summary(part)), table(part)]
    parts += sections
    if missing := sorted(set(best) - {b.op for b, _ in comparisons}):
        parts.append(
            f"Not measured yet, because their notebooks have not been run: {', '.join(missing)}."
        )
    return "\n\n".join(parts) + "\n"


def _badges(benchmarks: Sequence[Benchmark]) -> Iterator[str]:
    """Yield a list of the benchmarks' badges, if there are any."""
    lines = [
        f"- {b.op} {b.dtype}: {', '.join(badge_labels(b.badges))}." for b in benchmarks if b.badges
    ]
    if lines:
        yield "\n".join(["Badges of these benchmarks:\n", *lines])


def _where(benchmarks: Sequence[Benchmark], when: str) -> str:
    """Return GPUs, with their ops where there are several, versions, dates and the command."""
    machines = [(b.environment, b) for b in benchmarks if b.environment]
    pythons = sorted({here.python for here, _ in machines})
    return (
        f"{machines_text((here.line, b.op) for here, b in machines)}; Python {', '.join(pythons)}; "
        f"{when}. A copy reaches {_copy_rates(benchmarks)}. `{COMMAND}` ([json](ops.json))."
    )


def _copy_rates(benchmarks: Sequence[Benchmark]) -> str:
    """Return `4.12 to 4.27 TB/s on NVIDIA H200`, for each card."""
    rates: dict[str, list[float]] = {}
    for b in benchmarks:
        if b.environment and b.copy_gbps:
            rates.setdefault(b.environment.device, []).append(b.copy_gbps / 1e3)
    texts = {card: dict.fromkeys(f"{r:.2f}" for r in (min(v), max(v))) for card, v in rates.items()}
    return ", ".join(f"{' to '.join(ends)} TB/s on {card}" for card, ends in sorted(texts.items()))


def machines_text(places: Iterable[tuple[str, str]]) -> str:
    """Return the machines, each with its ops where there are several.

    Args:
        places: a machine's line, and an op that was measured there.
    """
    ops: dict[str, set[str]] = {}
    for line, op in places:
        ops.setdefault(line, set()).add(op)
    if len(ops) == 1:
        return next(iter(ops))
    return "; ".join(f"{line}: {', '.join(sorted(names))}" for line, names in sorted(ops.items()))


def data(comparisons: Sequence[tuple[Benchmark, str]], when: str) -> dict[str, object]:
    """Return the contents of docs/measured/ops.json."""
    benchmarks = [b for b, _ in comparisons]
    return {
        "command": COMMAND,
        "date": when,
        "environments": sorted({b.environment.line for b in benchmarks if b.environment}),
        "copy_gbps": sorted({b.copy_gbps for b in benchmarks if b.copy_gbps}),
        "rows": [asdict(row) for b, version in comparisons for row in rows(b, version)],
    }


def write(logs: Path, best: Mapping[str, str], into: Path, sections: Sequence[str] = ()) -> None:
    """Write both files; `sections` are those of other measurements."""
    comparisons, when = comparisons_in(logs, best), dates(logs)
    json_text = json.dumps(data(comparisons, when), indent=1) + "\n"
    (into / "ops.md").write_text(page(comparisons, when, best, sections), encoding="utf-8")
    (into / "ops.json").write_text(json_text, encoding="utf-8")
