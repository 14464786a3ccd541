"""The heat map of a sweep: a cell for each configuration, darker where it is faster."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from triton_magics.model import Configuration, Setting, Sweep, settings_text, shape_text
from triton_magics.rendering.canvas import (
    FAINT,
    GREY,
    INK,
    matplotlib_defaults,
    new_figure,
    readable_on,
    style_axes,
    write_captions,
)
from triton_magics.rendering.numbers import percent_text, time_text
from triton_magics.rendering.views.sweep import verdict_text
from triton_magics.rendering.views.words import subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SLOWEST = 2.0  # times the best time; slower cells have the same colour
_TIMES = "mean of the runs; darker is faster; a frame marks the fastest correct configuration"
_STATIC = "registers of a thread and occupancy; darker is a higher occupancy; a GPU gives times"
_Cell = tuple[tuple[str, Setting], ...]


def sweep_plot(value: Sweep) -> Figure | None:
    """Draw a heat map of the times, one setting across and all others down.

    The fastest correct configuration has a frame. A wrong one shows its verdict, without a colour.
    Without times (no GPU) it shows registers and occupancy, as compiled.

    Args:
        value: the sweep; any number of settings.

    Returns:
        The figure; None if nothing was timed or compiled.
    """
    if not value.timed and not any(map(_occupancy, value.configurations)):
        return None
    across, down = _sides(value)
    with matplotlib_defaults():
        names = max((len(_row_text(row)) for row in down), default=0)
        width = max(5.6, 1.2 + 0.085 * names + 0.95 * len(across))
        figure = new_figure(width, 1.7 + 0.42 * len(down))
        axes = figure.subplots()
        _draw(axes, value, across, down)
        reading = _TIMES if value.timed else _STATIC
        write_captions(
            figure, f"{subject(value.op, value.version)}: sweep · {_where(value)}", reading
        )
    return figure


def _where(value: Sweep) -> str:
    shape = shape_text(value.shape)
    size = value.size if value.size == shape else f"{value.size} {shape}"
    if not value.timed:
        return f"{size}, compiled for {value.target}, not timed"
    device = value.environment.device if value.environment else ""
    cache = "cold L2" if value.cold else "hot L2"
    return ", ".join(p for p in (size, device, value.dtype, cache, "net GPU time") if p)


def _sides(value: Sweep) -> tuple[list[tuple[str, Setting]], list[_Cell]]:
    """Return the setting with the most values (columns) and the combinations of the rest (rows)."""
    widest = max(value.knobs, key=lambda name: len(value.knobs[name]))
    across = [(widest, v) for v in value.knobs[widest]]
    others = [[(name, v) for v in vs] for name, vs in value.knobs.items() if name != widest]
    return across, list(itertools.product(*others))


def _row_text(row: _Cell) -> str:
    return settings_text(dict(row))


def _draw(axes: Axes, value: Sweep, across: list[tuple[str, Setting]], down: list[_Cell]) -> None:
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    by_settings = {frozenset(c.settings.items()): c for c in value.configurations}
    best, colours = value.best, mpl.colormaps["cividis"]
    for (y, row), (x, column) in itertools.product(enumerate(down), enumerate(across)):
        cell = by_settings.get(frozenset({column, *row}))
        share = _share(value, cell)
        face = "#f4f4f4" if share is None else colours(1 - share)
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor="white", linewidth=2))
        ink = readable_on(face)
        axes.text(x + 0.5, y + 0.5, _cell_text(value, cell), ha="center", va="center", color=ink,
                  fontsize=8.5, style="italic" if share is None else "normal")  # fmt: skip
        if cell is not None and cell is best:
            axes.add_patch(
                Rectangle(
                    (x + 0.03, y + 0.05),
                    0.94,
                    0.9,
                    fill=False,
                    edgecolor="#D55E00",
                    linewidth=2.6,
                    zorder=3,
                )
            )
    style_axes(axes, left=False)
    axes.set_xlim(0, len(across))
    axes.set_ylim(len(down), 0)
    axes.set_xticks([x + 0.5 for x in range(len(across))], [str(v) for _, v in across], color=INK)
    axes.set_yticks([y + 0.5 for y in range(len(down))], [_row_text(r) for r in down], color=INK)
    axes.set_xlabel(across[0][0], fontsize=9.5, color=GREY)
    axes.tick_params(length=0)
    axes.spines["bottom"].set_color(FAINT)


def _share(value: Sweep, cell: Configuration | None) -> float | None:
    """Return 1 for the best, 0 for twice its time or more; without times the occupancy."""
    if not value.timed:
        return _occupancy(cell)
    best = value.best
    if cell is None or cell not in value.timed or not cell.timing or not best or not best.timing:
        return None
    slower = math.log(cell.timing.mean_us / best.timing.mean_us) / math.log(_SLOWEST)
    return max(0.0, 1 - slower)


def _occupancy(cell: Configuration | None) -> float | None:
    """Return the share of the SM's warps, 0 to 1; None where it is unknown."""
    pct = cell.kernel.occupancy_pct if cell and cell.kernel and cell.can_launch else None
    return None if pct is None else pct / 100


def _cell_text(value: Sweep, cell: Configuration | None) -> str:
    if cell is None:
        return ""
    if cell in value.timed and cell.timing:
        return time_text(cell.timing.mean_us)
    share = _occupancy(cell)
    if not value.timed and cell.kernel and share is not None:
        return f"{cell.kernel.registers} regs\n{percent_text(100 * share)}"
    text = verdict_text(value, cell)
    return text.replace("does not compile", "no compile").replace("raised an error", "error")


__all__ = ["sweep_plot"]
