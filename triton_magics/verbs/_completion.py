"""Complete the words of a verb's line: its options, and the names that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from triton_magics.errors import TritonMagicsError
from triton_magics.verbs._arguments import Argument

_DTYPES = ("float32", "float16", "bfloat16")
_PLOTS = ("speedup", "times", "runs", "sweep")
_TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "sm_120")


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


class Names:
    """The names that a verb's arguments take: ops, versions, sizes, knobs, topics."""

    def __init__(self, lab: Callable[[], Any]) -> None:
        """Make a list of names.

        Args:
            lab: returns the Lab that lists ops and versions, or None.
        """
        self._lab = lab

    def complete(
        self, arguments: Iterable[Argument], words: Iterable[str], fragment: str
    ) -> list[tuple[str, str]]:
        """Return each completion with its kind: `option`, `op`, `version`, ...

        Args:
            arguments: of the verb.
            words: complete words of the line, without the verb.
            fragment: the word at the cursor so far, after its last comma.
        """
        following = find_next_argument(arguments, words)
        values = [(name, kind) for kind, name in self._values(following, fragment)]
        if fragment.startswith("-") or not values:
            values = [(option, "option") for option in following.options]
        return [(name, kind) for name, kind in values if name.startswith(fragment)]

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
            "technique": lambda: tuple(knowledge.shipped().techniques),
            "attempt": lambda: [
                name.partition(":")[2]
                for name in self._attempts(values.get("op", ""), values.get("version", ""))
            ],
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
