"""Tunable parameters of a CUDA C++ source: the numbers of its `#define`s. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from triton_magics.errors import BadValue, UnknownName, did_you_mean
from triton_magics.languages.cuda.cpp_source import find_defines, read_number
from triton_magics.model import Setting


@dataclass(frozen=True)
class Define:
    """The number of a `#define`, and its place in the source, in characters."""

    value: Setting
    place: tuple[int, int]


@dataclass(frozen=True)
class DefineSource:
    """A source with `#define`s; a name that is defined twice is no parameter."""

    text: str

    @cached_property
    def knobs(self) -> dict[str, Define]:
        """Return every parameter by name."""
        defines = list(find_defines(self.text))
        names = [name for name, _, _ in defines]
        return {
            name: Define(read_number(number), place)
            for name, number, place in defines
            if names.count(name) == 1
        }

    def check(self, name: str, value: Setting) -> Define:
        """Return the parameter, after a check that it can have the value.

        Raises:
            UnknownName: the source defines no such number.
            BadValue: the value is no number of its kind.
        """
        if name not in self.knobs:
            near = did_you_mean(name, self.knobs)
            names_text = ", ".join(self.knobs) or "none"
            raise UnknownName(f"no #define of a number called {name!r}.{near} Known: {names_text}")
        is_whole = isinstance(self.knobs[name].value, int)
        kinds = (int,) if is_whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            kind = "a whole number" if is_whole else "a number"
            raise BadValue(f"{name}: {value!r} is not {kind}, which its #define is")
        return self.knobs[name]

    def current(self, names: Iterable[str]) -> dict[str, Setting]:
        """Return the numbers of these parameters."""
        return {name: self.knobs[name].value for name in names if name in self.knobs}

    def apply(self, settings: Mapping[str, Setting]) -> str:
        """Return the source with other numbers.

        Raises:
            UnknownName, BadValue: no such parameter, or no number.
        """
        edits = [(self.check(name, value).place, value) for name, value in settings.items()]
        text = self.text
        for (start, end), value in sorted(edits, reverse=True):
            text = f"{text[:start]}{value!r}{text[end:]}"
        return text
