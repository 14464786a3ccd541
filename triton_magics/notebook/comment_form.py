"""The comment form of a cell magic: `# %%triton_kernel softmax v2` on a cell's first line.

To linters, formatters and editors the cell is Python; to IPython it is the magic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

Transform = Callable[[list[str]], list[str]]


def transformer(names: Iterable[str]) -> Transform:
    """Turns the comment into the magic, for cells whose first line is one of ours.

    Args:
        names: of the cell magics, without their signs.
    """
    ours = re.compile(rf"\s*#\s*(%%(?:{'|'.join(sorted(names))})\b.*)", re.DOTALL)

    def transform(lines: list[str]) -> list[str]:
        found = ours.fullmatch(lines[0]) if lines else None
        return [found[1], *lines[1:]] if found else lines

    return transform


class CommentForm:
    """The transformer in a shell, put in and taken out."""

    def __init__(self, shell: Any, names: Iterable[str]) -> None:
        self._shell = shell
        self._transform = transformer(names)

    def load(self) -> None:
        """From now on the comment form works."""
        self._shell.input_transformers_cleanup.append(self._transform)

    def unload(self) -> None:
        """It does so no more."""
        self._shell.input_transformers_cleanup.remove(self._transform)
