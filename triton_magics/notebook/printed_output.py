"""Print the first lines of a job in the cell; keep the others for a fold below."""

from __future__ import annotations

from collections.abc import Callable

N_LINES = 20  # a wrapper that prints in each of a hundred cases would hide the verdict
MAX_CHARS = 100_000  # of the others; a flood is not saved with the notebook


class PrintedOutput:
    """Passes on the first `N_LINES` lines and collects the others.

    Attributes:
        rest: the lines that were not passed on, at most `MAX_CHARS`.
        n_more: number of lines of the rest, those past `MAX_CHARS` included.
    """

    def __init__(self, print_text: Callable[[str], None]) -> None:
        self.rest = ""
        self.n_more = 0
        self._print = print_text
        self._n_printed = 0

    def __call__(self, text: str) -> None:
        """Print a text, or collect it."""
        for line in text.splitlines(keepends=True):
            if self._n_printed < N_LINES:
                self._print(line)
                self._n_printed += line.endswith("\n")
            else:
                self.rest += line[: MAX_CHARS - len(self.rest)]
                self.n_more += line.endswith("\n")
