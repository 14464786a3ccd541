"""Figures of the times: against size with their lower bounds, and run by run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from triton_magics.model import Benchmark, Timing, shape_text
from triton_magics.rendering.canvas import (
    FAINT,
    GREY,
    INK,
    SERIES,
    matplotlib_defaults,
    new_figure,
    style_axes,
    write_captions,
)
from triton_magics.rendering.numbers import time_text
from triton_magics.rendering.select_versions import select_versions
from triton_magics.rendering.views.badges import badge_text
from triton_magics.rendering.views.benchmark import is_void, shown_providers
from triton_magics.rendering.views.plot_view import spread_text
from triton_magics.rendering.views.timing import CLOCKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BELOW = 0.58  # share of a panel's width for the runs; the median stands beside them
_LEAST_REACH_PCT = 1.0
MOST_CURVES, MOST_ROWS = 8, 16  # versions
_LEAST_STEP = 0.4  # between two sizes, in powers of ten, so that their names don't overlap


class _Style(NamedTuple):
    """Colour, marker and line style of a provider."""

    colour: str
    marker: str
    line: str


def times_plot(value: Benchmark) -> Figure | None:
    """Draw the mean time of every provider against the size, with the floor and the roofline.

    The roofline is the larger of two times: the bytes at the measured copy rate, and the
    operations at the measured rate of a matrix product. The floor is the time of an empty kernel.

    Args:
        value: the benchmark; at most `MOST_CURVES` versions are shown.

    Returns:
        The figure; None if fewer than two sizes were timed or the benchmark is void.
    """
    sizes = [s for s in value.sizes if any(t.size == s for t in value.timings)]
    if len(sizes) < 2 or is_void(value):
        return None
    value, left_out = select_versions(value, MOST_CURVES)
    with matplotlib_defaults():
        figure = new_figure(7.4, 4.2)
        axes = figure.subplots()
        sizes.sort(key=lambda s: _volume(value, s))
        positions = _positions(value, sizes)
        for provider, style in _styles(value).items():
            _curve(axes, value, provider, positions, style)
        _bounds(axes, value, positions)
        style_axes(axes)
        axes.set_yscale("log")
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.minorticks_off()
        axes.set_xticks(
            list(positions.values()), [_size_text(value, s) for s in sizes], color=INK, fontsize=9
        )
        _time_ticks(axes)
        axes.legend(
            loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9, labelcolor=INK
        )
        reading = "mean of the runs, with their range; time is logarithmic; lower is faster"
        write_captions(
            figure, f"{value.op}: time against size · {_where(value)}", reading, left_out
        )
    return figure


def _styles(value: Benchmark) -> dict[str, _Style]:
    """Return the style of each provider: torch black and dashed, each other with its own colour."""
    styles: dict[str, _Style] = {}
    others = [p for p in shown_providers(value) if p != "torch"]
    if "torch" in shown_providers(value):
        styles["torch"] = _Style(INK, "o", "--")
    for i, provider in enumerate(others):
        colour, marker = SERIES[i % len(SERIES)]
        styles[provider] = _Style(colour, marker, "-" if i < len(SERIES) else "-.")
    return styles


def _curve(
    axes: Axes, value: Benchmark, provider: str, positions: dict[str, float], style: _Style
) -> None:
    timed = [t for s in positions if (t := value.timing(provider, s))]
    if not timed:
        return
    points = [positions[t.size] for t in timed]
    axes.vlines(points, [t.min_us for t in timed], [t.max_us for t in timed],
                color=style.colour, linewidth=1.4, alpha=0.7)  # fmt: skip
    axes.plot(points, [t.mean_us for t in timed], style.line, marker=style.marker,
              color=style.colour, markersize=6, linewidth=1.6, label=provider)  # fmt: skip


def _bounds(axes: Axes, value: Benchmark, positions: dict[str, float]) -> None:
    """Draw the measured lower bounds: the roofline and the floor."""
    limits = [(place, limit) for s, place in positions.items() if (limit := value.limit_us(s))]
    if len(limits) > 1:
        points, times = zip(*limits, strict=True)
        axes.plot(points, times, ":", color=GREY, linewidth=2, label="roofline (measured rates)")
    if value.floor_us:
        label = f"launch-bound below {time_text(value.floor_us)}"
        axes.axhline(value.floor_us, color=GREY, linewidth=1.2, linestyle="-.", label=label)


def _positions(value: Benchmark, sizes: Sequence[str]) -> dict[str, float]:
    """Return each size's position: the logarithm of its bytes, or evenly spaced if too close."""
    logs = [math.log10(_volume(value, s)) for s in sizes]
    near = any(b - a < _LEAST_STEP for a, b in pairwise(logs))
    return {s: float(i) if near else logs[i] for i, s in enumerate(sizes)}


def _volume(value: Benchmark, size: str) -> float:
    """Return a size's bytes, or its number of elements if the bytes are unknown."""
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
    """Draw each run's distance from its provider's median, one panel per size.

    Args:
        value: the benchmark; extra rounds, which only the verdicts use, are drawn hollow. At most
            `MOST_ROWS` versions are shown.

    Returns:
        The figure; None if nothing was timed or the benchmark is void.
    """
    sizes = [s for s in value.sizes if any(t.size == s for t in value.timings)]
    if not sizes or is_void(value):
        return None
    value, left_out = select_versions(value, MOST_ROWS)
    styles = _styles(value)
    with matplotlib_defaults():
        names = max(len(p) for p in styles)
        width = max(5.6, 0.6 + 0.085 * names + 2.5 * len(sizes))
        figure = new_figure(width, 1.6 + 0.44 * len(styles))
        rows = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        reach = max(_LEAST_REACH_PCT, *(abs(d) for t in value.timings for d in _deviations(t)))
        for axes, size in zip(rows, sizes, strict=True):
            _runs_panel(axes, value, size, styles, reach)
        rows[0].set_yticks(range(len(styles)), labels=list(styles), fontsize=9.5, color=INK)
        rows[0].set_ylim(len(styles) - 0.5, -0.5)
        reading = (
            "one dot per run, hollow if only the verdict uses it; horizontal: distance from the "
            "median; text: median, range of the runs"
        )
        write_captions(figure, f"{value.op}: every run · {_where(value)}", reading, left_out)
    return figure


def _deviations(timing: Timing, runs: Sequence[float] = ()) -> list[float]:
    """Return the distances of runs from the median of the official ones, in percent.

    Without `runs`: of every run, official and extra.
    """
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
        text = spread_text(timing)
        axes.text(0.62, row, text, transform=axes.get_yaxis_transform(), ha="left", va="center",
                  fontsize=8.5, color=INK if timing else GREY)  # fmt: skip
        if timing:
            _dots(axes, row, timing, style)
    style_axes(axes, left=False)
    axes.tick_params(axis="y", length=0)
    tick = float(f"{reach:.1g}")
    tick = tick if tick <= reach else tick / 2
    axes.set_xticks([-tick, 0, tick], [f"-{tick:g} %", "0", f"+{tick:g} %"])
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)


def _dots(axes: Axes, row: int, timing: Timing, style: _Style) -> None:
    """Draw each run a little above or below its row, at a fixed offset."""
    for runs, face in ((timing.extra_us, "none"), (timing.samples_us, style.colour)):
        heights = [row + 0.22 * (((i * 7) % 10) / 4.5 - 1) for i in range(len(runs))]
        axes.plot(_deviations(timing, runs) if runs else [], heights, linestyle="none",
                  marker=style.marker, markersize=4.5, markerfacecolor=face,
                  markeredgecolor=style.colour, alpha=0.75)  # fmt: skip


__all__ = ["runs_plot", "times_plot"]
