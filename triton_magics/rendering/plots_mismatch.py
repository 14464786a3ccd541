"""Figure of the elements that are wrong in an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_magics.model import Mismatch
from triton_magics.rendering.canvas import FAINT, GREY, INK, matplotlib_defaults, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure


def mismatch_plot(mismatch: Mismatch, title: str) -> Figure | None:
    """Draw the output's rows and columns as a coarse grid, darker where more elements are wrong.

    Args:
        mismatch: its picture has the shape (rows, columns), shares from 0 to 1.
        title: version and case.

    Returns:
        The figure; None if the mismatch has no picture.
    """
    if not mismatch.picture or not mismatch.picture[0]:
        return None
    n_rows, n_columns = len(mismatch.picture), len(mismatch.picture[0])
    with matplotlib_defaults():
        size = (1.4 + 0.105 * max(n_columns, 34), 1.2 + 0.105 * n_rows)
        figure = new_figure(*size)
        axes = figure.subplots()
        axes.pcolormesh(
            [[_visible_shade(share) for share in row] for row in mismatch.picture],
            cmap=_error_colours(), vmin=0, vmax=1, edgecolors=FAINT, linewidth=0.4,
        )  # fmt: skip
        axes.set_aspect("equal")
        axes.invert_yaxis()
        _label_grid(axes, mismatch, title)
    return figure


def _visible_shade(share: float) -> float:
    """Return a shade that shows even one wrong element in a cell of thousands."""
    return 0.3 + 0.7 * share if share > 0 else 0.0


def _error_colours() -> LinearSegmentedColormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("errors", ["white", "#D55E00", "#7a2f00"])


def _label_grid(axes: Axes, mismatch: Mismatch, title: str) -> None:
    wrong = f"{mismatch.n_wrong:,} of {mismatch.n_elements:,} wrong"
    where = f", {mismatch.where}" if mismatch.where else ""
    axes.set_title(f"{title}\n{wrong}{where}", fontsize=9.5, color=INK, loc="left")
    axes.set_xlabel("columns of the output", fontsize=8.5, color=GREY)
    axes.set_ylabel("rows", fontsize=8.5, color=GREY)
    axes.set_xticks([])
    axes.set_yticks([])


__all__ = ["mismatch_plot"]
