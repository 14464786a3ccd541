"""Complete the options of a magic, and the names (ops, versions, sizes) that it takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_magics.errors import TritonMagicsError
from triton_magics.notebook.magic_line import cut_comment
from triton_magics.verbs._arguments import Argument

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.notebook.magics import Magic

# A magic may follow `x =`, a cell magic `#`. Its name is complete: the cursor is after it.
_LINE = re.compile(
    r"^\s*(?:#\s*(?=%%)|[\w\s,.]+=\s*)?(?P<sign>%%?)(?P<magic>triton_\w+)\s+(?P<rest>.*)$"
)
_DTYPES = ("float32", "float16", "bfloat16")
_PLOTS = ("speedup", "times", "runs", "sweep")
_TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")


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


class NextArgument(NamedTuple):
    """The argument, or the options, that may come next.

    Attributes:
        argument: the argument whose value is next; None if only an option fits.
        values: values that the line has, by the name of their argument.
        options: those that may still be values.
    """

    argument: Argument | None
    values: Mapping[str, str]
    options: tuple[str, ...]


def find_next_argument(arguments: Iterable[Argument], words: Iterable[str]) -> NextArgument:
    """Read the complete words as the parser does, without its errors.

    Args:
        arguments: arguments of the magic.
        words: words before the cursor.
    """
    arguments = tuple(arguments)
    flags = {flag: a for a in arguments if not a.positional for flag in a.flags}
    places = [a for a in arguments if a.positional]
    pending, used, values = None, [], {}
    for word in words:
        if word in flags:
            used.append(flags[word])
            pending = flags[word] if flags[word].takes_value else None
        elif pending is not None:
            pending = pending if pending.many else None
        elif places:
            values[places[0].flags[0]] = word
            places = places if places[0].many else places[1:]
    pending = pending or (places[0] if places else None)
    free = [a.flags[-1] for a in arguments if not a.positional and (a not in used or a.repeats)]
    return NextArgument(pending, values, tuple(free))


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
        self._lab = lab
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
        names = self.names(start)
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
        following = find_next_argument(self._magics[start.sign].form.arguments, start.words)
        values = [(name, kind) for kind, name in self._values(following, start.fragment)]
        if start.fragment.startswith("-") or not values:
            values = [(option, "option") for option in following.options]
        return [(name, kind) for name, kind in values if name.startswith(start.fragment)]

    def _values(self, following: NextArgument, fragment: str) -> Iterable[tuple[str, str]]:
        argument = following.argument
        if argument is None:
            return ()
        values = following.values
        choices = [("choice", str(choice)) for choice in argument.options.get("choices") or ()]
        attempts = fragment.partition(":")[0] if ":" in fragment else ""
        kinds = argument.names.split()
        if attempts and "version" in kinds:
            op = values.get("op", "")
            return [("attempt", name) for name in self._attempts(op, attempts)]
        return choices + [(kind, name) for kind in kinds for name in self._of_kind(kind, values)]

    def _of_kind(self, kind: str, values: Mapping[str, str]) -> Iterable[str]:
        from triton_magics import knowledge, languages

        sources: dict[str, Callable[[], Iterable[str]]] = {
            "op": self._ops,
            "version": lambda: self._versions(values.get("op", "")),
            "new": lambda: self._next_version(values.get("op", "")),
            "knob": lambda: self._knobs(values.get("op", ""), values.get("version", "")),
            "against": lambda: ("torch.compile",),
            "all": lambda: ("all",),
            "size": lambda: self._sizes(values.get("op", "")),
            "dtype": lambda: _DTYPES,
            "target": lambda: _TARGETS,
            "plot": lambda: _PLOTS,
            "pattern": knowledge.patterns,
            "topic": lambda: (*knowledge.topics(), *knowledge.language_names()),
            "language": languages.names,
        }
        return sources[kind]()

    def _ops(self) -> Iterable[str]:
        from triton_magics import knowledge

        lab = self._lab()
        if lab is None:
            return sorted({*knowledge.op_names(), *knowledge.aliases()})
        return dict.fromkeys((*lab.session.workspace.open_ops(), *lab.op_names()))

    def _versions(self, op: str) -> Iterable[str]:
        """Return `v1`, and `v5_crash`: a name of the user's own is not cut."""
        from triton_magics.model import parse_version, version_name

        lab = self._lab()
        try:
            numbers = {v: parse_version(v)[0] for v in lab.versions(op)} if lab else {}
        except TritonMagicsError:  # the op may be misspelt
            return []
        return [f"v{n}" if n <= 4 and version_name(n) == v else v for v, n in numbers.items()]

    def _attempts(self, op: str, version: str) -> Iterable[str]:
        """Return `v1:1`, `v1:2`, one for each attempt at the version."""
        lab = self._lab()
        try:
            newest = lab.source(op, version).attempt if lab else 0
        except TritonMagicsError:  # the op or the version may be misspelt
            return []
        return [f"{version}:{n}" for n in range(1, newest + 1)]

    def _sizes(self, op: str) -> Iterable[str]:
        from triton_magics.model import SIZES

        lab = self._lab()
        try:
            return lab.sizes(op) if lab else SIZES
        except TritonMagicsError:  # the op may be misspelt
            return SIZES

    def _knobs(self, op: str, version: str) -> Iterable[str]:
        """Return the tunable names of a version: `BLOCK_SIZE=`."""
        lab = self._lab()
        try:
            return [f"{name}=" for name in lab.knobs(op, version)] if lab else []
        except TritonMagicsError:  # the version may not exist
            return []

    def _next_version(self, op: str) -> Iterable[str]:
        from triton_magics.model import parse_version

        numbers = [parse_version(version)[0] for version in self._versions(op)]
        return [f"v{max(numbers, default=0) + 1}"]
