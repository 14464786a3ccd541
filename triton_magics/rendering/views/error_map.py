"""The map of an output's errors, drawn in characters."""

from __future__ import annotations

from collections.abc import Sequence

_SHADES = "░▒▓█"


def error_map(picture: Sequence[Sequence[float]]) -> str:
    """Return the output's rows and columns as a coarse grid, darker where more elements are wrong.

    Args:
        picture: share of wrong elements per cell, 0 to 1; shape (rows, columns), at most 16 x 48.

    Returns:
        a framed map, or an empty string without elements.
    """
    if not picture or not picture[0]:
        return ""
    width = len(picture[0])
    title = " where " if width > 8 else ""
    top = f"┌{title}{'─' * (width - len(title))}┐"
    rows = [f"│{''.join(_shade(share) for share in row)}│" for row in picture]
    return "\n".join([top, *rows, f"└{'─' * width}┘"])


def _shade(share: float) -> str:
    if not share > 0:
        return " "
    return _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]
