"""Notes and tables of a benchmark: verdicts, floor, ceilings, control, statistics."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator

from triton_magics import roofline
from triton_magics.model import Benchmark, Comparison, NotTimed, Timing, short
from triton_magics.rendering.blocks import Document, Line, LineStatus, Matrix, MatrixCell, Table
from triton_magics.rendering.numbers import (
    MISSING,
    duration_text,
    fixed_text,
    flops_text,
    join_with_and,
    list_text,
    percent_text,
    rate_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.views.badges import badge_text
from triton_magics.rendering.views.words import join_parts

CLOCKS = {
    "gpu": "net GPU time",
    "graph": "GPU time in a CUDA graph",
    "launch": "time with Python and launch",
}
_ORDER = ("faster", "same", "slower", "undecided")
_COMPUTE_HEAVY = 10  # flops per byte above which the arithmetic rate is shown


def verdict_words(value: Benchmark, candidate: str, baseline: str) -> str:
    """Return `faster`, `faster: medium large, same: small`; `—` without a comparison."""
    groups = _groups(value, candidate, baseline)
    if not groups:
        return MISSING
    if len(groups) == 1:
        (verdict, members), *_ = groups
        return verdict if len(members) == len(value.sizes) else f"{verdict} at {_sizes(members)}"
    return ", ".join(
        f"{verdict}: {' '.join(c.size for c in members)}" for verdict, members in groups
    )


def _sizes(members: list[Comparison]) -> str:
    return join_with_and([c.size for c in members])


def _groups(value: Benchmark, candidate: str, baseline: str) -> list[tuple[str, list[Comparison]]]:
    comparisons = [c for s in value.sizes if (c := value.comparison(candidate, s, baseline))]
    groups = [(verdict, [c for c in comparisons if c.verdict == verdict]) for verdict in _ORDER]
    return [(verdict, members) for verdict, members in groups if members]


def verdict_text(value: Benchmark, candidate: str, baseline: str) -> str:
    """Return the verdicts as a sentence, with the speedups of `faster` and `slower`."""
    pieces = []
    for verdict, members in _groups(value, candidate, baseline):
        plain = verdict in ("same", "undecided")
        sizes = [c.size if plain else f"{c.size} ({ratio_text(c.ratio)})" for c in members]
        every = plain and len(members) == len(value.sizes) > 1
        pieces.append(f"{verdict} at {'every size' if every else join_with_and(sizes)}")
    return ", ".join(pieces)


def comparison_matrix(value: Benchmark) -> Document:
    """Return the speedup of each version over the one before it and over each baseline, by size."""
    if not value.on_gpu:
        return ()
    pairs = [(new, old) for old, new in itertools.pairwise(value.versions)]
    pairs += [(v, baseline) for baseline in value.against for v in value.versions if v != baseline]
    rows = [
        (f"{short(new)} against {short(old)}", tuple(_pair_cell(value, new, old)))
        for new, old in dict.fromkeys(pairs)
        if _groups(value, new, old)
    ]
    if not rows:
        return ()
    caption = "speedups in paired rounds, above 1 is faster"
    return (Matrix(caption, ("versions", *value.sizes), tuple(rows)),)


def _pair_cell(value: Benchmark, candidate: str, baseline: str) -> Iterator[MatrixCell]:
    for size in value.sizes:
        c = value.comparison(candidate, size, baseline)
        if c is None:
            yield MatrixCell(MISSING)
        else:
            word = "" if c.verdict in ("faster", "slower") else f" {c.verdict}"
            about = f"{c.verdict}: {c.low:.2f}x to {c.high:.2f}x in {c.rounds} rounds"
            yield MatrixCell(f"{ratio_text(c.ratio)}{word}", _COLOURS[c.verdict], about)


_COLOURS: dict[str, LineStatus] = {
    "faster": "good", "slower": "bad", "same": "info", "undecided": "info",
}  # fmt: skip


# ------------------------------------------------------------------------------------- notes


def notes(value: Benchmark) -> Document:
    """Return the notes below the table, one line each."""
    lines = [*_not_timed_lines(value.not_timed)]
    if value.on_gpu and value.timings:
        lines += [
            *_floor_line(value),
            *_rate_lines(value),
            *_beyond_roofline_lines(value),
            *_census_lines(value),
            *_quality_line(value),
            *(Line(condition, "info") for condition in value.conditions),
        ]
    return tuple(lines)


def limits(value: Benchmark) -> Iterator[Line]:
    """Yield how far the times are from what the card can do: launch-bound sizes, rates."""
    if any(is_launch_bound(value, size) for size in value.sizes):
        yield from _floor_line(value)
    yield from _rate_lines(value)
    yield from _beyond_roofline_lines(value)


def rates_text(value: Benchmark) -> str:
    """Return the operations whose measured rates give the roofline."""
    own = f"torch's {value.dtype} matmul" if value.matmul_tflops.get(value.dtype) else None
    return join_with_and([rate for rate in ("a copy" if value.copy_gbps else None, own) if rate])


def _beyond_roofline_lines(value: Benchmark) -> Iterator[Line]:
    """Yield the versions that are faster than the roofline, and why they can be."""
    sizes = [(s, _faster_than_roofline(value, s)) for s in value.sizes]
    faster = "; ".join(f"{size} {versions}" for size, versions in sizes if versions)
    if faster:
        why = f"the measured rate of {rates_text(value)} is no limit of the hardware"
        yield Line(f"faster than the roofline: {faster}; {why}", "info")


def _faster_than_roofline(value: Benchmark, size: str) -> str:
    """Return `v2 3.31x, v3 3.40x`; nothing if no version is, or the size is launch-bound."""
    limit_us = value.limit_us(size)
    if limit_us is None or is_launch_bound(value, size):
        return ""
    timed = [(v, t) for v in value.versions if (t := value.timing(v, size))]
    ratios = {v: limit_us / t.mean_us for v, t in timed}
    faster = {v: r for v, r in ratios.items() if 100 * r >= roofline.FASTER_PCT}
    return list_text([f"{short(v)} {ratio_text(r)}" for v, r in faster.items()])


def _not_timed_lines(missing: tuple[NotTimed, ...]) -> Iterator[Line]:
    for size, group in itertools.groupby(missing, key=lambda m: (m.size, m.reason)):
        members = list(group)
        who = [short(m.provider) for m in members if m.provider]
        estimate = max((m.estimate_s for m in members if m.estimate_s is not None), default=None)
        about = f", about {duration_text(estimate)}" if estimate is not None else ""
        yield Line(f"{MISSING} {join_parts((size[0], list_text(who)))}: {size[1]}{about}", "info")


def _floor_line(value: Benchmark) -> Iterator[Line]:
    if value.floor_us is None:
        return
    own = f", {time_text(value.empty_kernel_us)} of it the kernel" if value.empty_kernel_us else ""
    bound = [s for s in value.sizes if is_launch_bound(value, s)]
    verdict = f"{join_with_and(bound)}: launch-bound, with little to gain" if bound else None
    yield Line(join_parts((f"floor {time_text(value.floor_us)} (an empty kernel{own})", verdict)))


def is_launch_bound(value: Benchmark, size: str) -> bool:
    """Return True if the fastest version takes less than an empty kernel through the timer."""
    means = [t.mean_us for v in value.versions if (t := value.timing(v, size))]
    return bool(means) and roofline.launch_bound(min(means), value.floor_us)


def _rate_lines(value: Benchmark) -> Iterator[Line]:
    """Yield the rates of the largest size, and of each shape of the user."""
    own = [s for s in value.sizes if s not in value.op_sizes]
    for size in (*[s for s in value.sizes if s in value.op_sizes][-1:], *own):
        yield from _rate_line(value, size)


def _rate_line(value: Benchmark, size: str) -> Iterator[Line]:
    timed = [t for v in value.versions if (t := value.timing(v, size))]
    best = min(timed, key=lambda t: t.mean_us, default=None)
    if best is None or is_launch_bound(value, best.size):
        return
    text = join_parts((_traffic_text(best, value.copy_gbps), _arithmetic_text(best, value)))
    if text:
        when = value.ceilings_measured
        dated = f" (ceilings measured {when})" if when else ""
        yield Line(f"{best.size}, {short(best.provider)}: {text}{dated}")


def _traffic_text(timing: Timing, copy_gbps: float | None) -> str | None:
    if timing.gbps is None:
        return None
    share = roofline.share_pct(timing.gbps, copy_gbps)
    return rate_text(timing.gbps) + _share_text(share, "this GPU's copy rate")


def _share_text(share_pct: float | None, rate: str) -> str:
    """Return `, 94 % of a rate`, or `, 3.31x a rate` beyond it."""
    if share_pct is None:
        return ""
    if share_pct >= roofline.FASTER_PCT:
        return f", {ratio_text(share_pct / 100)} {rate}"
    return f", {percent_text(share_pct)} of {rate}"


def _arithmetic_text(timing: Timing, value: Benchmark) -> str | None:
    if timing.tflops is None or not timing.bytes or not timing.flops:
        return None
    if timing.flops / timing.bytes <= _COMPUTE_HEAVY:
        return None
    share = roofline.share_pct(timing.tflops, value.matmul_tflops.get(value.dtype))
    rate = f"the rate of torch's own {value.dtype} matmul"
    return f"{flops_text(timing.tflops)}{_share_text(share, rate)}"


def _census_lines(value: Benchmark) -> Iterator[Line]:
    for note, group in itertools.groupby(value.census, key=lambda c: c.note):
        if note:
            who = list_text([short(c.provider) for c in group])
            yield Line(f"{MISSING} no census of {who}: {note}", "info")
    for c in value.census:
        if len(c.streams) > 1:
            yield Line(
                f"{short(c.provider)} works on {len(c.streams)} streams; what has not joined the "
                "current one when a call ends is not in its time",
                "warn",
            )


def _quality_line(value: Benchmark) -> Iterator[Line]:
    off = [c for c in value.controls if c.verdict in ("faster", "slower")]
    if off:
        yield Line(
            f"the A/A control differs from itself: {_named(off)}; smaller differences are not "
            "significant",
            "warn",
        )
    unsettled = [c for c in value.controls if c.verdict == "undecided"]
    if unsettled:
        yield Line(
            f"the A/A control is not settled: {_named(unsettled)}; differences within that "
            "interval may be noise",
            "info",
        )
    quiet = value.controls and not off and not unsettled
    control = f"A/A control {_controls_text(value)}" if quiet else None
    yield Line(join_parts((control, _calls_text(value), _discards_text(value))), "info")


def _named(controls: list[Comparison]) -> str:
    return list_text([f"{c.size} {_interval(c)}" for c in controls])


def _calls_text(value: Benchmark) -> str | None:
    """Return `a run is the middle of 15 calls at small`."""
    calls = {t.size: t.calls for t in value.timings if t.calls > 1}
    counts = join_with_and([f"{n} calls at {size}" for size, n in calls.items()])
    return f"a run is the middle of {counts}" if calls else None


def _controls_text(value: Benchmark) -> str:
    middle = statistics.median(c.ratio for c in value.controls)
    low, high = min(c.low for c in value.controls), max(c.high for c in value.controls)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def _interval(comparison: Comparison) -> str:
    return f"{comparison.ratio:.2f} ({comparison.low:.2f} to {comparison.high:.2f})"


def _discards_text(value: Benchmark) -> str:
    reasons: dict[str, int] = {}
    for discard in (d for t in value.timings for d in t.discards):
        reasons[discard.reason] = reasons.get(discard.reason, 0) + discard.count
    lost = sum(reasons.values())
    used = sum(t.calls * (len(t.samples_us) + len(t.extra_us)) for t in value.timings)
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return f"{lost} of {used + lost} calls discarded" + (f" ({why})" if why else "")


# ------------------------------------------------------------------------------------ tables


def comparison_table(value: Benchmark) -> Table:
    """Return every verdict with its interval, rounds and threshold."""
    header = (
        "kernel",
        "against",
        "size",
        "speedup",
        "99 % interval",
        "rounds",
        "threshold",
        "verdict",
    )
    rows = tuple(_comparison_row(c) for c in (*value.comparisons, *value.controls))
    aligns = "lllrrrrl"
    return Table(
        "from paired rounds, median of the ratios; above 1 is faster", header, rows, aligns
    )


def _comparison_row(c: Comparison) -> tuple[str, ...]:
    return (
        c.candidate, c.baseline, c.size, f"{c.ratio:.3f}", f"{c.low:.3f} to {c.high:.3f}",
        str(c.rounds), percent_text(100 * c.threshold), c.verdict,
    )  # fmt: skip


def statistics_table(value: Benchmark) -> Table:
    """Return mean, median, spread, extremes and percentiles of the official runs."""
    unit, scale = _scale(value)
    header = ("Kernel", "size", "mean", "median", "std", "min", "max", "p95", "p99", "raw", "runs")
    shown = [t for t in value.timings if value.on_gpu or t.provider in value.versions]
    how = f", {CLOCKS.get(value.clock or '', 'interpreter')}"
    label = how + badge_text(value.badges)
    rows = tuple(_statistics_row(t, scale) for t in shown)
    aligns = "ll" + "r" * 9
    return Table(f"{value.op}, {unit}{label}", header, rows, aligns)


def census_table(value: Benchmark) -> Table:
    """Return the kernels of one call of each provider: origin, time, stream."""
    size = value.census[0].size
    caption = f"a call at {size}, caches warm, by CUPTI in a separate pass (clock: kernels)"
    header = ("who", "kernel", "by", "times", "us", "stream")
    rows = tuple(
        (
            c.provider, k.name[:60], "Triton" if k.triton else "torch", f"{k.count:g}",
            fixed_text(k.us), str(k.stream),
        )
        for c in value.census
        for k in c.kernels
    )  # fmt: skip
    return Table(caption, header, rows, "lllrrr")


def _scale(value: Benchmark) -> tuple[str, float]:
    slowest = max(t.mean_us for t in value.timings)
    return ("milliseconds", 1e3) if slowest > 1e5 else ("microseconds", 1.0)


def _statistics_row(t: Timing, scale: float) -> tuple[str, ...]:
    raw = statistics.fmean(t.raw_us) if t.raw_us else None
    figures = (
        t.mean_us, t.median_us, t.std_us, t.min_us, t.max_us, t.percentile_us(95),
        t.percentile_us(99), raw,
    )  # fmt: skip
    cells = (MISSING if f is None else fixed_text(f / scale) for f in figures)
    return (t.provider, t.size, *cells, str(len(t.samples_us)))
