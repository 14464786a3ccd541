"""Figures of speedups per version and of the positions of wrong elements.

Each verdict has a marker and a word besides its colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from triton_magics import roofline
from triton_magics.model import Benchmark, shape_text
from triton_magics.rendering.canvas import (
    FAINT,
    GREY,
    INK,
    matplotlib_defaults,
    new_figure,
    png,
    write_captions,
)
from triton_magics.rendering.numbers import (
    flops_text,
    percent_text,
    rate_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.select_versions import select_versions
from triton_magics.rendering.views.badges import badge_text
from triton_magics.rendering.views.benchmark import finding, is_void, shown_providers
from triton_magics.rendering.views.timing import CLOCKS, is_launch_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMN = 0.56  # left edge of the labels, as a share of a panel's width
_TIME_LABEL, _RATIO_LABEL = 0.19, 0.12  # width of a tick label, as a share of a panel's width
MOST_ROWS = 16
_PANEL, _ROOFLINE = 2.3, 1.7  # widths in inches
_ROOFLINE_END = 160  # percent: the labels stand right of the bars
_LEFT, _RIGHT = 0.16, 1.3  # margins of a panel, as shares of the range of its marks
_STYLE = {
    "faster": ("#0072B2", "^"),
    "slower": ("#D55E00", "v"),
    "same": ("#6b6b6b", "o"),
    "undecided": ("#6b6b6b", "D"),
    "": ("#6b6b6b", "o"),
}


@dataclass(frozen=True, slots=True)
class _Mark:
    """One version at one size: its position on the axis and its label."""

    row: int
    middle: float
    low: float
    high: float
    verdict: str
    label: str


@dataclass(frozen=True, slots=True)
class _Panel:
    """One size: its title, its marks, and the rows without a mark."""

    title: str
    marks: tuple[_Mark, ...]
    missing: tuple[int, ...]


def speedup_plot(value: Benchmark) -> Figure | None:
    """Draw the speedup of every provider over torch, one panel per size, the roofline beside it.

    The last panel has each provider's share of the roofline at the largest size that is not
    launch-bound; it is left out where the GPU's rates were not measured. Interpreter times are
    drawn as times, labelled as such, never beside torch.

    Args:
        value: the benchmark; any number of sizes; at most `MOST_ROWS` versions are shown.

    Returns:
        The figure; None if nothing was timed or the benchmark is void.
    """
    if not value.timings or not value.versions or is_void(value):
        return None
    compared = value.on_gpu and "torch" in value.providers
    value, left_out = select_versions(value, MOST_ROWS)
    names = shown_providers(value)
    panels = [_panel(value, names, size, compared) for size in value.sizes]
    roofline_size = _roofline_size(value)
    with matplotlib_defaults():
        figure, rows, last = _new_panels(names, len(panels), has_roofline=bool(roofline_size))
        _set_limits(rows, panels, compared)
        for axes, panel in zip(rows, panels, strict=True):
            _draw(axes, panel, compared)
            _set_ticks(axes, compared)
        _name_rows(rows[0], names)
        if last and roofline_size:
            _draw_roofline(last, value, names, roofline_size)
        _write_captions(figure, value, compared, left_out)
    return figure


def _panel(value: Benchmark, names: Sequence[str], size: str, compared: bool) -> _Panel:
    row_marks = [_mark(value, row, name, size, compared) for row, name in enumerate(names)]
    marks = tuple(mark for mark in row_marks if mark)
    missing = tuple(row for row, mark in enumerate(row_marks) if not mark)
    return _Panel(_size_title(value, size), marks, missing)


def _size_title(value: Benchmark, size: str) -> str:
    shapes = [t.shape for t in value.timings if t.size == size]
    own = size not in value.op_sizes
    name = "your own" if own else size
    return f"{name}\n{shape_text(shapes[0]) if shapes else size if own else ''}"


def _mark(value: Benchmark, row: int, name: str, size: str, compared: bool) -> _Mark | None:
    if not compared:
        timing = value.timing(name, size)
        if not timing:
            return None
        label = time_text(timing.mean_us)
        return _Mark(row, timing.mean_us, timing.min_us, timing.max_us, "", label)
    ratio = value.size_speedup(name, size)
    paired = value.comparison(name, size) if name != "torch" else None
    if paired:
        label = f"{ratio_text(ratio or paired.ratio)}, {paired.verdict}"
        return _Mark(row, paired.ratio, paired.low, paired.high, paired.verdict, label)
    return _Mark(row, ratio, ratio, ratio, "", ratio_text(ratio)) if ratio else None


# ----------------------------------------------------------------------------------- drawing


def _new_panels(
    names: Sequence[str], n_panels: int, *, has_roofline: bool
) -> tuple[Figure, Sequence[Axes], Axes | None]:
    """Return the figure, a panel for each size, and the roofline's."""
    width = max(5.6, 0.6 + 0.085 * max(map(len, names)) + _PANEL * n_panels)
    figure = new_figure(width + _ROOFLINE * has_roofline, 1.75 + 0.36 * len(names))
    n_columns = n_panels + has_roofline
    ratios = [1.0] * n_panels + [_ROOFLINE / _PANEL] * has_roofline
    axes = figure.subplots(1, n_columns, sharey=True, squeeze=False, width_ratios=ratios)[0]
    return figure, list(axes[:n_panels]), axes[n_panels] if has_roofline else None


def _set_limits(rows: Sequence[Axes], panels: Sequence[_Panel], compared: bool) -> None:
    """Set one logarithmic scale for all panels, with a column for the labels at the right."""
    import math

    ends = [end for p in panels for m in p.marks for end in (m.low, m.high)]
    low, high = min([*ends, *([1.0] if compared else [])]), max([*ends, 1.0 if compared else 0.0])
    spread = max(math.log(high / low), math.log(1.5))
    for axes in rows:
        axes.set_xscale("log")
        axes.set_xlim(low * math.exp(-_LEFT * spread), high * math.exp(_RIGHT * spread))


def _draw(axes: Axes, panel: _Panel, compared: bool) -> None:
    _style_panel(axes, panel)
    if compared:
        axes.axvline(1.0, color=INK, linewidth=1.1, zorder=1)
    for mark in panel.marks:
        colour, marker = _STYLE[mark.verdict]
        axes.plot([mark.low, mark.high], [mark.row] * 2, color=colour, linewidth=2.2, zorder=2)
        axes.plot(mark.middle, mark.row, marker, color=colour, markersize=7.5, zorder=3)
        _write_label(axes, mark.row, mark.label)
    for row in panel.missing:
        axes.text(
            _COLUMN, row, "not timed", transform=axes.get_yaxis_transform(), ha="left",
            va="center", color=GREY, fontsize=8.5, style="italic", backgroundcolor="white",
        )  # fmt: skip


def _roofline_size(value: Benchmark) -> str | None:
    """Return the op's largest size with a roofline that is not launch-bound; None without one."""
    sizes = [s for s in value.sizes if s in value.op_sizes] or value.sizes
    usable = (s for s in reversed(sizes) if value.limit_us(s) and not is_launch_bound(value, s))
    return next(usable, None)


def _draw_roofline(axes: Axes, value: Benchmark, names: Sequence[str], size: str) -> None:
    """Draw each provider's share of the roofline, as a bar; one that is faster has its ratio."""
    limit_us = value.limit_us(size) or 0.0
    _style_panel(axes, _Panel(f"share of the roofline\n{size}", (), ()))
    axes.grid(visible=False)
    axes.set_xlim(0, _ROOFLINE_END)
    axes.axvline(100, color=INK, linewidth=1.1, linestyle=":", zorder=1)
    for row, name in enumerate(names):
        timing = value.timing(name, size)
        if timing is None:
            continue
        share = 100 * limit_us / timing.mean_us
        colour = GREY if name not in value.versions else _STYLE["faster"][0]
        axes.barh(row, min(share, 100), height=0.42, color=colour, zorder=2)
        text = percent_text(share) if share < roofline.FASTER_PCT else ratio_text(share / 100)
        axes.text(108, row, text, ha="left", va="center", color=INK, fontsize=9)
    axes.set_xticks([0, 50, 100], ["0", "50 %", "100 %"])


def _write_label(axes: Axes, row: int, text: str) -> None:
    axes.text(
        _COLUMN, row, text, transform=axes.get_yaxis_transform(), ha="left", va="center",
        color=INK, fontsize=9, backgroundcolor="white",
    )  # fmt: skip


def _style_panel(axes: Axes, panel: _Panel) -> None:
    axes.set_facecolor("white")
    axes.set_title(panel.title, fontsize=9.5, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", colors=GREY, labelsize=8.5)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)


def _name_rows(axes: Axes, versions: Sequence[str]) -> None:
    axes.set_yticks(range(len(versions)), labels=list(versions), fontsize=9.5, color=INK)
    axes.set_ylim(len(versions) - 0.5, -0.5)


def _ticks_below_labels(axes: Axes, label: float) -> list[float]:
    """Return round numbers under the marks, at most four, with room for their labels."""
    import math
    from itertools import pairwise

    low, right = axes.get_xlim()
    high = low * (right / low) ** (_COLUMN - 0.03)
    ticks: list[float] = []
    for steps, every in (
        ((1, 1.5, 2, 3, 5, 7), 1),
        ((1, 2, 5), 1),
        ((1, 2, 3), 1),
        ((1, 1.5, 7), 1),
        ((1, 3), 1),
        ((1,), 1),
        ((1,), 3),
    ):
        places = [s * 10.0**power for power in range(-3, 12, every) for s in steps]
        ticks = [p for p in places if low <= p <= high]
        room = [math.log(b / a) / math.log(right / low) for a, b in pairwise(ticks)]
        if len(ticks) <= 4 and min(room, default=1.0) >= label:
            break
    return ticks


def _set_ticks(axes: Axes, compared: bool) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    label = _RATIO_LABEL if compared else _TIME_LABEL
    axes.xaxis.set_major_locator(FixedLocator(_ticks_below_labels(axes, label)))
    axes.xaxis.set_minor_locator(NullLocator())
    tick_text = (lambda x, _: f"{x:g}x") if compared else (lambda x, _: time_text(x))
    axes.xaxis.set_major_formatter(FuncFormatter(tick_text))


def _write_captions(figure: Figure, value: Benchmark, compared: bool, left_out: str) -> None:
    device = value.environment.device if value.environment else ""
    cache = "cold L2" if value.cold else "hot L2"
    if compared:
        title = f"{value.op}: speedup over torch"
        clock = CLOCKS.get(value.clock or "")
        where = ", ".join(part for part in (device, value.dtype, cache, clock) if part)
        reading = "median of paired rounds with its 99 % interval; right of the line is faster"
        roof = _roofline_text(value)
    else:
        label = "interpreter times" if value.clock == "interpreter" else "times"
        title, where = f"{value.op}: {label}", ", ".join(p for p in (device, value.dtype) if p)
        ranks = ", not comparable with a GPU" if value.clock == "interpreter" else ""
        reading = f"mean, with the range of the runs{ranks}; left is faster"
        roof = ""
    write_captions(figure, f"{title} · {where}{badge_text(value.badges)}", reading, roof, left_out)


def _roofline_text(value: Benchmark) -> str:
    """Return the rates behind the roofline, or why there is none."""
    rates = (
        f"copy {rate_text(value.copy_gbps)}" if value.copy_gbps else "",
        f"torch's {value.dtype} matmul {flops_text(tflops)}"
        if (tflops := value.matmul_tflops.get(value.dtype))
        else "",
    )
    measured = ", ".join(filter(None, rates))
    if not measured or not any(value.limit_us(size) for size in value.sizes):
        return "no roofline: this GPU's rates were not measured"
    if _roofline_size(value) is None:
        return "no roofline: every size is launch-bound"
    return f"roofline: time at measured rates ({measured}), which a version can exceed"


__all__ = ["finding", "png", "speedup_plot"]
