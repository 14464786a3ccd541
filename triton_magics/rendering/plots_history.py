"""The history of an op: speedups over torch by benchmark, with a line where anything changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_magics.model import History, HistoryPoint, short
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_TICKS = 8
_NAMES = ("GPU", "driver", "torch", "triton")


def history_plot(value: History) -> Figure | None:
    """Draw each version's speedup, a benchmark after the other; a changed source breaks its line.

    Args:
        value: the history; one benchmark is enough.

    Returns:
        The figure; None without a point.
    """
    if not value.points:
        return None
    with matplotlib_defaults():
        figure = new_figure(max(6.4, min(12.0, 3.0 + 0.35 * len(value.times))), 3.4)
        axes = figure.subplots()
        style_axes(axes)
        _draw_series(axes, value)
        _draw_changes(axes, value)
        _set_ticks(axes, value)
        axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
        axes.set_ylabel("speedup over torch", color=INK, fontsize=9)
        axes.legend(fontsize=8.5, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        devices = ", ".join(dict.fromkeys(p.device for p in value.points))
        dtypes = ", ".join(dict.fromkeys(p.dtype for p in value.points))
        write_captions(
            figure,
            f"{value.op}: every recorded benchmark · {devices}, {dtypes}",
            "geometric mean of the sizes; a vertical line: GPU, driver, torch or Triton changed; "
            "a broken line: the source changed",
        )
    return figure


def _draw_series(axes: Axes, value: History) -> None:
    places = {time: i for i, time in enumerate(value.times)}
    for n, version in enumerate(value.versions):
        color, marker = SERIES[n % len(SERIES)]
        own = [p for p in value.points if p.version == version]
        label: str | None = short(version)
        for part in _same_sources(own):
            across = [places[p.time] for p in part]
            axes.plot(
                across, [p.speedup for p in part], color=color, marker=marker, label=label,
                markersize=5, linewidth=1.4,
            )  # fmt: skip
            label = None


def _same_sources(points: list[HistoryPoint]) -> list[list[HistoryPoint]]:
    """Return runs of points with one source and dtype."""
    parts: list[list[HistoryPoint]] = []
    for point in points:
        key = (point.sha256, point.dtype)
        if parts and (parts[-1][-1].sha256, parts[-1][-1].dtype) == key:
            parts[-1].append(point)
        else:
            parts.append([point])
    return parts


def _draw_changes(axes: Axes, value: History) -> None:
    first = {p.time: p for p in reversed(value.points)}
    times = value.times
    axes.margins(y=0.25)
    for i in range(1, len(times)):
        before, after = first[times[i - 1]].environment, first[times[i]].environment
        pairs = zip(_NAMES, before, after, strict=True)
        changed = [f"{name} {new}" for name, old, new in pairs if old != new]
        if changed:
            axes.axvline(i - 0.5, color=FAINT, linewidth=1.2)
            axes.annotate(
                "\n".join(changed), (i - 0.5, 1.0), xycoords=("data", "axes fraction"),
                xytext=(3, -2), textcoords="offset points", va="top", fontsize=7.5, color=GREY,
            )  # fmt: skip


def _set_ticks(axes: Axes, value: History) -> None:
    step = max(1, -(-len(value.times) // MOST_TICKS))
    places = range(0, len(value.times), step)
    axes.set_xticks(list(places), [value.times[i][5:16].replace("T", "\n") for i in places])
    axes.set_xlim(-0.5, len(value.times) - 0.5)
