"""The canvas, the fonts and the colours of every figure.

Built with matplotlib's objects, not pyplot: no global state, no window. Every background is
opaque, so a figure looks the same in a light and a dark notebook. Colours: Okabe and Ito (2008),
which colour-blind readers can tell apart.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 110
FACE, INK, GREY, FAINT = "white", "#222222", "#6b6b6b", "#e4e4e4"
# Okabe and Ito's without yellow, which is faint on white; each colour has its own marker.
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
def matplotlib_defaults() -> Iterator[None]:
    """Use matplotlib's default settings, so that the user's own don't change a log."""
    import matplotlib as mpl

    with mpl.rc_context({k: v for k, v in mpl.rcParamsDefault.items() if k != "backend"}):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, facecolor=FACE, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Axes, *, left: bool = True) -> None:
    """Remove the box around the axes; leave the bottom line and, with `left`, the left one."""
    axes.set_facecolor(FACE)
    axes.tick_params(colors=GREY, labelsize=8.5)
    for side in ("top", "right", *(() if left else ("left",))):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(GREY)


def write_captions(figure: Figure, title: str, *notes: str) -> None:
    """Write the title above the figure and the notes on how to read it below; skip empty notes."""
    below = "; ".join(filter(None, notes))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK, wrap=True)
    figure.supxlabel(below, x=0.01, ha="left", fontsize=8.5, color=GREY, wrap=True)


def readable_on(face: Any) -> str:
    """Return black or white, whichever has the greater contrast with a colour (WCAG 2)."""
    from matplotlib.colors import to_rgb

    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(face)]
    luminance = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    return "white" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "black"


def png(figure: Figure, alt: str) -> bytes:
    """Return the figure as PNG; the same figure gives the same bytes.

    Args:
        figure: a figure of this package.
        alt: description in words; stored in the file's metadata.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.image import imsave

    stream = io.BytesIO()
    metadata: Any = {"Software": None, "Description": alt}
    canvas = FigureCanvasAgg(figure)
    with matplotlib_defaults():
        canvas.draw()  # `savefig` would lay it out and draw it twice
        imsave(stream, canvas.buffer_rgba(), format="png", dpi=DPI, metadata=metadata)
    return stream.getvalue()
