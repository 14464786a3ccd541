"""The figure of a report: the speedup of every op's best version over torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_magics.model import Report, short
from triton_magics.rendering.canvas import matplotlib_defaults, new_figure
from triton_magics.rendering.numbers import ratio_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK, _GREY, _FASTER, _SLOWER = "#222222", "#6b6b6b", "#0072B2", "#D55E00"


def overview_plot(value: Report) -> Figure | None:
    """Draw the speedup of each op's best version over torch.

    Args:
        value: the report; ops without GPU times are left out.

    Returns:
        The figure; None if no op has a GPU time.
    """
    timed = [(f"{op.op} {short(op.best or '')}", op.speedup) for op in value.ops if op.speedup]
    if not timed:
        return None
    with matplotlib_defaults():
        size = (6.4, 1.3 + 0.36 * len(timed))
        figure = new_figure(*size)
        axes = figure.subplots()
        for row, (_, speedup) in enumerate(timed):
            colour = _FASTER if speedup >= 1 else _SLOWER
            axes.barh(row, speedup, height=0.55, color=colour)
            axes.text(speedup, row, f" {ratio_text(speedup)}", va="center", color=_INK, fontsize=9)
        axes.axvline(1.0, color=_INK, linewidth=1.1)
        axes.set_yticks(range(len(timed)), labels=[name for name, _ in timed], color=_INK)
        axes.set_ylim(len(timed) - 0.5, -0.5)
        axes.set_xlim(0, 1.15 * max(1.0, *(s for _, s in timed)))
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", colors=_GREY)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.set_title("best version of each op: speedup over torch", loc="left", fontsize=11)
        figure.supxlabel("finals; right of the line is faster", x=0.01, ha="left", fontsize=8.5)
    return figure
