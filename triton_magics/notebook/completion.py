"""Completion of what a magic takes: its options, and the names that its arguments are names of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from triton_magics.errors import TritonMagicsError
from triton_magics.verbs import Argument

if TYPE_CHECKING:
    from triton_magics.lab import Lab
    from triton_magics.notebook.magics import Form

# A magic may stand after `x =`; its name is complete, and the cursor is behind it.
_LINE = re.compile(r"^\s*(?:[\w\s,.]+=\s*)?(?P<sign>%%?)(?P<magic>triton_\w+)\s+(?P<rest>.*)$")
_DTYPES = ("float32", "float16", "bfloat16")
_PLOTS = ("speedup", "times", "runs", "sweep")
_TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")


class Typed(NamedTuple):
    """The part of a line that is complete, and the word that is not."""

    sign: str
    words: tuple[str, ...]
    fragment: str


def typed(line: str) -> Typed | None:
    """What stands before the cursor on a line of one of our magics; None elsewhere."""
    match = _LINE.match(line)
    if match is None:
        return None
    # `--sizes=small` is two words, as the parser reads it.
    rest = re.sub(r"(?<!\S)(--[\w-]+)=", r"\1 ", match["rest"])
    *words, last = re.split(r"\s+", rest)
    *_, fragment = last.split(",")
    return Typed(match["sign"] + match["magic"], tuple(words), fragment)


class Expected(NamedTuple):
    """What may come next.

    Attributes:
        argument: the one whose value it may be; None where only options may come.
        given: what stands already, by the argument's name.
        options: those that may still be given.
    """

    argument: Argument | None
    given: Mapping[str, str]
    options: tuple[str, ...]


def expected(arguments: Iterable[Argument], words: Iterable[str]) -> Expected:
    """Reads the complete words as the parser would, without its errors.

    Args:
        arguments: of the magic.
        words: those before the cursor's.
    """
    arguments = tuple(arguments)
    flags = {flag: a for a in arguments if not a.positional for flag in a.flags}
    places = [a for a in arguments if a.positional]
    pending, used, given = None, [], {}
    for word in words:
        if word in flags:
            used.append(flags[word])
            pending = flags[word] if flags[word].takes_value else None
        elif pending is not None:
            pending = pending if pending.many else None
        elif places:
            given[places[0].flags[0]] = word
            places = places if places[0].many else places[1:]
    pending = pending or (places[0] if places else None)
    free = [a.flags[-1] for a in arguments if not a.positional and (a not in used or a.repeats)]
    return Expected(pending, given, tuple(free))


class Completion:
    """A matcher of IPython's second kind, for the lines of our magics only.

    An IPython before 8.6 (Colab's) has only the first kind: it offers the same, among its own.
    """

    def __init__(self, forms: Mapping[str, Form], lab: Callable[[], Lab | None]) -> None:
        """Makes a matcher that is registered nowhere yet.

        Args:
            forms: the magics by name.
            lab: the Lab to ask for ops and versions, where there is one.
        """
        self._arguments = {form.verb.sign: form.arguments for form in forms.values()}
        self._lab = lab
        self._matcher: Any = None

    def load(self, shell: Any) -> None:
        """Registers the matcher with a shell."""
        from IPython.core import completer

        if not hasattr(shell.Completer, "custom_matchers"):
            return  # no completer at all, or a strange one: one types
        if hasattr(completer, "context_matcher"):

            @completer.context_matcher(identifier="triton_magics")
            def match(context: Any) -> Any:  # marked by IPython, as a method can't be
                return self.match(context)
        else:

            def match(text: Any) -> Any:
                return self.match_words(shell.Completer.text_until_cursor, text)

        self._matcher = match
        shell.Completer.custom_matchers.append(match)

    def unload(self, shell: Any) -> None:
        """Takes it away."""
        if self._matcher is not None:
            shell.Completer.custom_matchers.remove(self._matcher)
            self._matcher = None

    def match(self, context: Any) -> dict[str, Any]:
        """What IPython asks for: completions of the word at the cursor, and silence of others."""
        from IPython.core.completer import SimpleCompletion

        found = typed(context.text_until_cursor)
        if found is None or found.sign not in self._arguments:
            return {"completions": []}
        if found.sign.startswith("%%") and context.cursor_line > 0:
            return {"completions": []}
        names = self.names(found)
        return {
            "completions": [SimpleCompletion(text=n, type=kind) for n, kind in names],
            "matched_fragment": found.fragment,
            "suppress": True,
            "ordered": True,
        }

    def match_words(self, line: str, text: str) -> list[str]:
        """What an older IPython asks for: whole words in place of the text at the cursor."""
        found = typed(line)
        if found is None or found.sign not in self._arguments or found.fragment != text:
            return []
        return [name for name, _ in self.names(found)]

    def names(self, found: Typed) -> list[tuple[str, str]]:
        """What the word may become, and what each is: `option`, `op`, `version`, ..."""
        may = expected(self._arguments[found.sign], found.words)
        values = [(name, kind) for kind, name in self._values(may)]
        if found.fragment.startswith("-") or not values:
            values = [(option, "option") for option in may.options]
        return [(name, kind) for name, kind in values if name.startswith(found.fragment)]

    def _values(self, may: Expected) -> Iterable[tuple[str, str]]:
        kinds = may.argument.names.split() if may.argument else ()
        return [(kind, name) for kind in kinds for name in self._of_kind(kind, may.given)]

    def _of_kind(self, kind: str, given: Mapping[str, str]) -> Iterable[str]:
        from triton_magics import knowledge
        from triton_magics.model import SIZES

        known: dict[str, Callable[[], Iterable[str]]] = {
            "op": self._ops,
            "version": lambda: self._versions(given.get("op", "")),
            "new": lambda: self._next_version(given.get("op", "")),
            "knob": lambda: self._knobs(given.get("op", ""), given.get("version", "")),
            "against": lambda: ("torch.compile",),
            "all": lambda: ("all",),
            "size": lambda: SIZES,
            "dtype": lambda: _DTYPES,
            "target": lambda: _TARGETS,
            "plot": lambda: _PLOTS,
            "pattern": knowledge.patterns,
            "topic": knowledge.topics,
        }
        return known[kind]()

    def _ops(self) -> Iterable[str]:
        from triton_magics import knowledge

        lab = self._lab()
        return lab.ops() if lab else sorted({*knowledge.op_names(), *knowledge.aliases()})

    def _versions(self, op: str) -> Iterable[str]:
        from triton_magics.model import short

        lab = self._lab()
        try:
            return [short(version) for version in lab.versions(op)] if lab else []
        except TritonMagicsError:  # the op may be misspelt as yet
            return []

    def _knobs(self, op: str, version: str) -> Iterable[str]:
        """What of a version can be swept, ready for its values."""
        lab = self._lab()
        try:
            return [f"{name}=" for name in lab.knobs(op, version)] if lab else []
        except TritonMagicsError:  # no such version as yet
            return []

    def _next_version(self, op: str) -> Iterable[str]:
        numbers = [int(version[1:]) for version in self._versions(op)]
        return [f"v{max(numbers, default=0) + 1}"]
