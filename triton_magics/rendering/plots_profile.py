"""The picture of a profile: the call below its measured roofline, and how busy each unit is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from triton_magics.model import CallRoofline, Profile
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
from triton_magics.rendering.numbers import flops_text, percent_text, rate_text, time_text
from triton_magics.rendering.views.profile import profile_headline, roofline_line
from triton_magics.rendering.views.words import subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNITS = {
    "dram_pct": "device memory", "l2_pct": "L2 cache", "l1_pct": "L1 cache", "sm_pct": "SM",
    "tensor_pct": "tensor pipe", "issue_pct": "issue slots", "occupancy_pct": "occupancy",
}  # fmt: skip
_MARGIN = 4.0  # factor between a point and the end of its axis
_BAR = 0.38


class _Point(NamedTuple):
    """A call below the roofline."""

    name: str
    intensity: float
    tflops: float
    is_measured: bool


def profile_plot(value: Profile) -> Figure | None:
    """Draw the roofline of a profile and the load of each unit; the other version beside it.

    Args:
        value: the profile; without counters it has no units, without operations no roofline.

    Returns:
        The figure; None if it has neither.
    """
    points, call = list(_points(value)), value.roofline
    sides = [side for side in (value, value.against) if side and _loads(side)]
    if not sides and (not points or call is None):
        return None
    with matplotlib_defaults():
        widths = [3.9] * bool(points) + [3.4] * bool(sides)
        figure = new_figure(sum(widths) + 0.6, 3.5)
        axes = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
        if points and call is not None:
            _draw_roofline(axes[0], call, points, value.case.dtype)
        if sides:
            _draw_loads(axes[-1], sides, has_legend=not points)
        hollow = any(point.is_measured for point in points)
        write_captions(
            figure,
            f"{subject(value.op, value.version)} at {value.case.label}: "
            + (time_text(value.duration_us) if value.duration_us else "not timed"),
            "the lines are this GPU's measured rates" if points else "",
            "filled: every tensor moved once; hollow: the traffic that was counted"
            if hollow
            else "",
            "bars: percent of each unit's peak" if sides else "",
        )
    return figure


def describe_profile(value: Profile) -> str:
    """Return the picture in words."""
    return "; ".join(line.text for line in (profile_headline(value), *roofline_line(value)))


def _points(value: Profile) -> Iterator[_Point]:
    """Yield the calls that can be drawn: those with operations, bytes and a time."""
    for side in (value, value.against):
        call = side.roofline if side else None
        if side is None or call is None or not call.intensity or not call.tflops:
            continue
        name = subject(side.op, side.version)
        yield _Point(name, call.intensity, call.tflops, is_measured=False)
        moved = [(k.dram_gbps or 0.0) * (k.duration_us or 0.0) * 1e3 for k in side.kernels]
        if call.flops and all(moved):
            yield _Point(name, call.flops / sum(moved), call.tflops, is_measured=True)


def _draw_roofline(axes: Axes, call: CallRoofline, points: list[_Point], dtype: str) -> None:
    style_axes(axes)
    peak, slope = call.peak_tflops, call.copy_gbps
    ridges = [peak / slope * 1e3] if peak and slope else []
    across = [*(p.intensity for p in points), *ridges]
    low, high = min(across) / _MARGIN, max(across) * _MARGIN
    axes.set_xscale("log")
    axes.set_yscale("log")
    if slope:
        end = ridges[0] if ridges else high
        axes.plot([low, end], [low * slope / 1e3, end * slope / 1e3], color=INK, linewidth=1.4)
        at = low**0.3 * end**0.7
        axes.annotate(
            f"copy {rate_text(slope)}", (at, at * slope / 1e3), xytext=(-6, 3),
            textcoords="offset points", ha="right", fontsize=8, color=GREY,
        )  # fmt: skip
    if peak:
        start = ridges[0] if ridges else low
        axes.plot([start, high], [peak, peak], color=INK, linewidth=1.4)
        axes.annotate(
            f"matmul {dtype} {flops_text(peak)}", (high, peak), xytext=(0, 4),
            textcoords="offset points", ha="right", fontsize=8, color=GREY,
        )  # fmt: skip
    names = list(dict.fromkeys(point.name for point in points))
    for point in points:
        color, marker = SERIES[names.index(point.name)]
        axes.plot(
            [point.intensity], [point.tflops], marker=marker, color=color, markersize=7,
            markerfacecolor="none" if point.is_measured else color, linestyle="none",
            label=None if point.is_measured else point.name,
        )  # fmt: skip
    axes.set_xlim(low, high)
    heights = [p.tflops for p in points] + [peak] * bool(peak)
    axes.set_ylim(min(p.tflops for p in points) / _MARGIN, max(h for h in heights if h) * _MARGIN)
    axes.grid(color=FAINT, linewidth=0.6)
    axes.set_xlabel("operations per byte", color=INK, fontsize=9)
    axes.set_ylabel("TFLOP/s", color=INK, fontsize=9)
    axes.legend(fontsize=8, frameon=False, loc="lower right")


def _loads(value: Profile) -> dict[str, float]:
    """Return the load of each unit that the main kernel's counters show, percent."""
    kernel = value.main_kernel
    figures = {name: getattr(kernel, name) for name in _UNITS} if kernel else {}
    return {name: pct for name, pct in figures.items() if pct is not None}


def _draw_loads(axes: Axes, sides: list[Profile], *, has_legend: bool) -> None:
    style_axes(axes)
    height = 2 * _BAR / len(sides)
    for n, side in enumerate(sides):
        loads = _loads(side)
        rows = [i + (n - (len(sides) - 1) / 2) * height for i, _ in enumerate(_UNITS)]
        lengths = [loads.get(name, 0.0) for name in _UNITS]
        axes.barh(
            rows, lengths, height * 0.9, color=SERIES[n][0], label=subject(side.op, side.version)
        )
        for row, name in zip(rows, _UNITS, strict=True):
            text = percent_text(loads[name]) if name in loads else "not counted"
            axes.annotate(
                text, (loads.get(name, 0.0), row), xytext=(3, 0), textcoords="offset points",
                va="center", fontsize=7.5, color=INK,
            )  # fmt: skip
    axes.set_yticks(range(len(_UNITS)), list(_UNITS.values()))
    axes.invert_yaxis()
    axes.set_xlim(0, 118)
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.set_xlabel("percent of its peak", color=INK, fontsize=9)
    if len(sides) > 1 and has_legend:
        axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)


__all__ = ["describe_profile", "profile_plot"]
