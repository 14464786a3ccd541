"""The comment form of a cell magic: `# %%triton_kernel softmax v2` on a cell's first line.

To linters, formatters and editors the cell is Python; to IPython it is the magic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

Transform = Callable[[list[str]], list[str]]


def make_transformer(names: Iterable[str]) -> Transform:
    """Return a function that turns the comment on the first line into the magic.

    Args:
        names: names of the cell magics, without `%%`.
    """
    magic = re.compile(rf"\s*#\s*(%%(?:{'|'.join(sorted(names))})\b.*)", re.DOTALL)

    def transform(lines: list[str]) -> list[str]:
        match = magic.fullmatch(lines[0]) if lines else None
        return [match[1], *lines[1:]] if match else lines

    return transform


class CommentForm:
    """The input transformer of a shell."""

    def __init__(self, shell: Any, names: Iterable[str]) -> None:
        self._shell = shell
        self._transform = make_transformer(names)

    def load(self) -> None:
        """Register the transformer."""
        self._shell.input_transformers_cleanup.append(self._transform)

    def unload(self) -> None:
        """Remove the transformer."""
        self._shell.input_transformers_cleanup.remove(self._transform)
