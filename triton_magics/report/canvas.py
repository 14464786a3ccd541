"""What every figure is drawn on and with: one face, one ink, colours that all can tell apart.

Built with matplotlib's objects, not pyplot: no global state, no window. Every face is opaque, so
that a figure reads the same in a light and a dark notebook; colours are Okabe and Ito's.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110
FACE, INK, GREY, FAINT = "white", "#222222", "#6b6b6b", "#e4e4e4"
# Okabe and Ito's, without yellow, which is faint on white; each comes with a marker of its own.
SERIES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#56B4E9", "v"),
    ("#E69F00", "P"),
    ("#7a4b2a", "X"),
    ("#6b6b6b", "*"),
)


@contextmanager
def defaults() -> Iterator[None]:
    """Matplotlib as it ships: the reader's own settings don't change a log."""
    import matplotlib as mpl

    with mpl.rc_context({k: v for k, v in mpl.rcParamsDefault.items() if k != "backend"}):
        yield


def sheet(width: float, height: float) -> Figure:
    """An empty figure of that many inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, facecolor=FACE, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain(axes: Axes, *, left: bool = True) -> None:
    """An axes without a box: the bottom line, and the left one where it is wanted."""
    axes.set_facecolor(FACE)
    axes.tick_params(colors=GREY, labelsize=8.5)
    for side in ("top", "right", *(() if left else ("left",))):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(GREY)


def say(figure: Figure, title: str, *how: str) -> None:
    """What is shown, above; how to read it, below, those of the clauses that are not empty."""
    whole = textwrap.fill(title, int(figure.get_figwidth() * 12.5))
    below = textwrap.fill("; ".join(filter(None, how)), int(figure.get_figwidth() * 16))
    figure.suptitle(whole, x=0.01, ha="left", fontsize=11, color=INK)
    figure.supxlabel(below, x=0.01, ha="left", fontsize=8.5, color=GREY)


def readable_on(face: Any) -> str:
    """Dark or white ink, whichever has the greater contrast with a colour (WCAG 2)."""
    from matplotlib.colors import to_rgb

    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(face)]
    luminance = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "black"


def png(figure: Figure, alt: str) -> bytes:
    """The figure as PNG; the same figure gives the same bytes.

    Args:
        figure: one of this package's.
        alt: what it shows, in words; kept in the file as its description.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.image import imsave

    stream = io.BytesIO()
    metadata: Any = {"Software": None, "Description": alt}
    canvas = FigureCanvasAgg(figure)
    with defaults():
        canvas.draw()  # once: `savefig` would lay it out and draw it twice
        imsave(stream, canvas.buffer_rgba(), format="png", dpi=DPI, metadata=metadata)
    return stream.getvalue()
