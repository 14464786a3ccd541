"""Figures of the times themselves: against size with what bounds them, and run by run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from triton_magics import roofline
from triton_magics.model import Benchmark, Timing, shape_text, short
from triton_magics.report.canvas import FAINT, GREY, INK, SERIES, defaults, plain, say, sheet
from triton_magics.report.few import fewer
from triton_magics.report.numbers import percent_text, time_text
from triton_magics.report.views.benchmark import shown_providers, void
from triton_magics.report.views.timing import CLOCKS
from triton_magics.report.views.words import badge_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BELOW = 0.58  # of a panel's width: the runs; their median in words stands beside them
_LEAST_REACH_PCT = 1.0
MOST_CURVES, MOST_ROWS = 8, 16  # versions
_LEAST_STEP = 0.4  # between two sizes, in powers of ten, so that their names don't overlap


class _Style(NamedTuple):
    """How a provider is drawn."""

    colour: str
    marker: str
    line: str


def times_plot(value: Benchmark) -> Figure | None:
    """Mean time of every provider against the size, with the floor and the roofline.

    None where fewer than two sizes were timed, or where the benchmark is void.

    Args:
        value: the benchmark; of very many versions the most telling are shown. The roofline is
            the longer of the bytes at the measured copy's rate and the operations at the measured
            matrix product's; the floor is an empty kernel.
    """
    sizes = [s for s in value.sizes if any(t.size == s for t in value.timings)]
    if len(sizes) < 2 or void(value):
        return None
    value, left_out = fewer(value, MOST_CURVES)
    with defaults():
        figure = sheet(7.4, 4.2)
        axes = figure.subplots()
        sizes.sort(key=lambda s: _volume(value, s))
        at = _places(value, sizes)
        for provider, style in _styles(value).items():
            _curve(axes, value, provider, at, style)
        _bounds(axes, value, at)
        plain(axes)
        axes.set_yscale("log")
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.minorticks_off()
        axes.set_xticks(
            list(at.values()), [_size_text(value, s) for s in sizes], color=INK, fontsize=9
        )
        _time_ticks(axes)
        axes.legend(
            loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9, labelcolor=INK
        )
        how = "mean of the runs, with their range; time is logarithmic; lower is faster"
        say(figure, f"{value.op}: time against size · {_where(value)}", how, left_out)
    return figure


def times_finding(value: Benchmark) -> str:
    """What the picture shows, in words: every provider's times, and what bounds them."""
    each = "; ".join(f"{short(p)}: {_times_text(value, p)}" for p in shown_providers(value))
    limit = _limit_us(value, value.sizes[-1])
    bounds = (
        f"; floor {time_text(value.floor_us)}" if value.floor_us else "",
        f"; roofline at {value.sizes[-1]} {time_text(limit)}" if limit else "",
    )
    return f"{value.op}, {each} at {' / '.join(value.sizes)}{''.join(bounds)}"


def _times_text(value: Benchmark, provider: str) -> str:
    means = [t.mean_us if (t := value.timing(provider, s)) else None for s in value.sizes]
    return " / ".join(map(time_text, means))


def _styles(value: Benchmark) -> dict[str, _Style]:
    """Torch in ink and dashed, the others each in a colour and with a marker of their own."""
    found: dict[str, _Style] = {}
    others = [p for p in shown_providers(value) if p != "torch"]
    if "torch" in shown_providers(value):
        found["torch"] = _Style(INK, "o", "--")
    for i, provider in enumerate(others):
        colour, marker = SERIES[i % len(SERIES)]
        found[provider] = _Style(colour, marker, "-" if i < len(SERIES) else "-.")
    return found


def _curve(
    axes: Axes, value: Benchmark, provider: str, at: dict[str, float], style: _Style
) -> None:
    timed = [t for s in at if (t := value.timing(provider, s))]
    if not timed:
        return
    places = [at[t.size] for t in timed]
    axes.vlines(places, [t.min_us for t in timed], [t.max_us for t in timed],
                color=style.colour, linewidth=1.4, alpha=0.7)  # fmt: skip
    axes.plot(places, [t.mean_us for t in timed], style.line, marker=style.marker,
              color=style.colour, markersize=6, linewidth=1.6, label=provider)  # fmt: skip


def _bounds(axes: Axes, value: Benchmark, at: dict[str, float]) -> None:
    """What no kernel gets below, as far as it was measured."""
    limits = [(place, limit) for s, place in at.items() if (limit := _limit_us(value, s))]
    if len(limits) > 1:
        places, times = zip(*limits, strict=True)
        axes.plot(places, times, ":", color=GREY, linewidth=2, label="roofline (measured rates)")
    if value.floor_us:
        label = f"launch-bound below {time_text(value.floor_us)}"
        axes.axhline(value.floor_us, color=GREY, linewidth=1.2, linestyle="-.", label=label)


def _limit_us(value: Benchmark, size: str) -> float | None:
    """The least time that the measured rates allow at a size; None where none is known."""
    timing = next((t for t in value.timings if t.size == size), None)
    if timing is None:
        return None
    return roofline.limit_us(
        timing.bytes, timing.flops, value.copy_gbps, value.matmul_tflops.get(value.dtype)
    )


def _places(value: Benchmark, sizes: Sequence[str]) -> dict[str, float]:
    """Where each size stands: by the logarithm of its bytes, or one after the other if too near."""
    logs = [math.log10(_volume(value, s)) for s in sizes]
    near = any(b - a < _LEAST_STEP for a, b in pairwise(logs))
    return {s: float(i) if near else logs[i] for i, s in enumerate(sizes)}


def _volume(value: Benchmark, size: str) -> float:
    """How large a size is: its bytes, or elements where those are not known."""
    timing = next(t for t in value.timings if t.size == size)
    return float(timing.bytes or math.prod(timing.shape) or 1)


def _size_text(value: Benchmark, size: str) -> str:
    shape = shape_text(next(t.shape for t in value.timings if t.size == size))
    return shape if size == shape else f"{size}\n{shape}"


def _time_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda us, _: time_text(us)))


def _where(value: Benchmark) -> str:
    device = value.environment.device if value.environment else ""
    interpreted = value.clock == "interpreter"
    cache = "not comparable with a GPU" if interpreted else "cold L2" if value.cold else "hot L2"
    clock = "interpreter times" if interpreted else CLOCKS.get(value.clock or "")
    parts = ", ".join(p for p in (device, value.dtype, cache, clock) if p)
    return f"{parts}{badge_text(value.badges)}"


# ---------------------------------------------------------------------------------- the runs


def runs_plot(value: Benchmark) -> Figure | None:
    """How far each run lies from its provider's median: a dot each, a panel per size.

    None where nothing was timed, or where the benchmark is void.

    Args:
        value: the benchmark; further rounds, which feed only the verdicts, are drawn hollow. Of
            very many versions the most telling are shown.
    """
    sizes = [s for s in value.sizes if any(t.size == s for t in value.timings)]
    if not sizes or void(value):
        return None
    value, left_out = fewer(value, MOST_ROWS)
    styles = _styles(value)
    with defaults():
        names = max(len(p) for p in styles)
        width = max(5.6, 0.6 + 0.085 * names + 2.5 * len(sizes))
        figure = sheet(width, 1.6 + 0.44 * len(styles))
        rows = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        reach = max(_LEAST_REACH_PCT, *(abs(d) for t in value.timings for d in _deviations(t)))
        for axes, size in zip(rows, sizes, strict=True):
            _runs_panel(axes, value, size, styles, reach)
        rows[0].set_yticks(range(len(styles)), labels=list(styles), fontsize=9.5, color=INK)
        rows[0].set_ylim(len(styles) - 0.5, -0.5)
        how = (
            "a dot is a run, hollow where it feeds only the verdict; across: how far from the "
            "median, which stands beside it with the range of the runs"
        )
        say(figure, f"{value.op}: every run · {_where(value)}", how, left_out)
    return figure


def runs_finding(value: Benchmark) -> str:
    """What the picture shows, in words: how far each provider's runs spread around their median."""
    each = "; ".join(
        f"{short(p)}: " + " / ".join(_spread_text(value.timing(p, s)) for s in value.sizes)
        for p in shown_providers(value)
    )
    return f"{value.op}, median and spread of the runs, {each} at {' / '.join(value.sizes)}"


def _spread_text(timing: Timing | None) -> str:
    if timing is None:
        return "not timed"
    spread = 100 * (timing.max_us - timing.min_us) / timing.median_us
    return f"{time_text(timing.median_us)}, {percent_text(spread)}"


def _deviations(timing: Timing, runs: Sequence[float] = ()) -> list[float]:
    """How far runs lie from the median of the official ones, percent; by default every run."""
    middle = statistics.median(timing.samples_us)
    return [100 * (us / middle - 1) for us in runs or (*timing.samples_us, *timing.extra_us)]


def _runs_panel(
    axes: Axes, value: Benchmark, size: str, styles: dict[str, _Style], reach: float
) -> None:
    axes.set_title(_size_text(value, size), fontsize=9.5, color=INK)
    timed = {p: t for p in styles if (t := value.timing(p, size))}
    axes.set_xlim(-1.15 * reach, 2.3 * reach / _BELOW - 1.15 * reach)
    axes.plot([0, 0], [-0.5, len(styles) - 0.5], color=GREY, linewidth=1)
    for row, (provider, style) in enumerate(styles.items()):
        timing = timed.get(provider)
        words = _spread_text(timing)
        axes.text(0.62, row, words, transform=axes.get_yaxis_transform(), ha="left", va="center",
                  fontsize=8.5, color=INK if timing else GREY)  # fmt: skip
        if timing:
            _dots(axes, row, timing, style)
    plain(axes, left=False)
    axes.tick_params(axis="y", length=0)
    tick = float(f"{reach:.1g}")
    tick = tick if tick <= reach else tick / 2
    axes.set_xticks([-tick, 0, tick], [f"-{tick:g} %", "0", f"+{tick:g} %"])
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)


def _dots(axes: Axes, row: int, timing: Timing, style: _Style) -> None:
    """Each run a little above or below its row, always in the same place."""
    for runs, face in ((timing.extra_us, "none"), (timing.samples_us, style.colour)):
        heights = [row + 0.22 * (((i * 7) % 10) / 4.5 - 1) for i in range(len(runs))]
        axes.plot(_deviations(timing, runs) if runs else [], heights, linestyle="none",
                  marker=style.marker, markersize=4.5, markerfacecolor=face,
                  markeredgecolor=style.colour, alpha=0.75)  # fmt: skip


__all__ = ["runs_finding", "runs_plot", "times_finding", "times_plot"]
