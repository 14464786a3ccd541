"""Complete the options of a magic, and the names (ops, versions, sizes) that it takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_magics.notebook.magic_line import cut_comment
from triton_magics.verbs._completion import Names

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.notebook.magics import Magic

# A magic may follow `x =`, a cell magic `#`. Its name is complete: the cursor is after it.
_LINE = re.compile(
    r"^\s*(?:#\s*(?=%%)|[\w\s,.]+=\s*)?(?P<sign>%%?)(?P<magic>triton_\w+)\s+(?P<rest>.*)$"
)


class LineStart(NamedTuple):
    """The complete words of a line, and the start of the word at the cursor."""

    sign: str
    words: tuple[str, ...]
    fragment: str


def parse_line_start(line: str) -> LineStart | None:
    """Parse the line of one of our magics up to the cursor; return None for another line."""
    match = _LINE.match(line)
    if match is None or cut_comment(match["rest"]) != match["rest"]:
        return None
    # `--sizes=small` is two words, as the parser reads it.
    rest = re.sub(r"(?<!\S)(--[\w-]+)=", r"\1 ", match["rest"])
    *words, last = re.split(r"\s+", rest)
    *_, fragment = last.split(",")
    return LineStart(match["sign"] + match["magic"], tuple(words), fragment)


class Completion:
    """A matcher (IPython's API of version 2) for the lines of our magics only.

    IPython before 8.6 (Colab's) has version 1 only: the same names, among IPython's own.
    """

    def __init__(self, magics: Iterable[Magic], lab: Callable[[], Lab | None]) -> None:
        """Make a matcher; `load` registers it.

        Args:
            magics: a verb is imported when its line is completed.
            lab: returns the Lab that lists ops and versions, or None.
        """
        self._magics = {f"{'%%' if m.kind == 'cell' else '%'}{m.name}": m for m in magics}
        self._names = Names(lab)
        self._matcher: Any = None

    def load(self, shell: Any) -> None:
        """Register the matcher with a shell."""
        from IPython.core import completer

        if not hasattr(shell.Completer, "custom_matchers"):
            return  # no completer, or one of another kind
        if hasattr(completer, "context_matcher"):

            @completer.context_matcher(identifier="triton_magics")
            def match(context: Any) -> Any:  # IPython sets attributes, which a method lacks
                return self.match(context)
        else:

            def match(text: Any) -> Any:
                return self.match_words(shell.Completer.text_until_cursor, text)

        self._matcher = match
        shell.Completer.custom_matchers.append(match)

    def unload(self, shell: Any) -> None:
        """Remove the matcher."""
        if self._matcher is not None:
            shell.Completer.custom_matchers.remove(self._matcher)
            self._matcher = None

    def match(self, context: Any) -> dict[str, Any]:
        """Return the completions of the word at the cursor, and suppress other matchers."""
        from IPython.core.completer import SimpleCompletion

        start = parse_line_start(context.text_until_cursor)
        if start is None or start.sign not in self._magics:
            return {"completions": []}
        if start.sign.startswith("%%") and context.cursor_line > 0:
            return {"completions": []}
        # Without a completion IPython would offer every name of Python: the word itself is one.
        names = self.names(start) or [(start.fragment, "word")] * bool(start.fragment)
        return {
            "completions": [SimpleCompletion(text=n, type=kind) for n, kind in names],
            "matched_fragment": start.fragment,
            "suppress": True,
            "ordered": True,
        }

    def match_words(self, line: str, text: str) -> list[str]:
        """Return whole words for the text at the cursor (API of version 1)."""
        start = parse_line_start(line)
        if start is None or start.sign not in self._magics or start.fragment != text:
            return []
        return [name for name, _ in self.names(start)]

    def names(self, start: LineStart) -> list[tuple[str, str]]:
        """Return each completion with its kind: `option`, `op`, `version`, ..."""
        arguments = self._magics[start.sign].form.arguments
        return self._names.complete(arguments, start.words, start.fragment)
