"""Public values of Python's standard modules, which a call must leave as they were.

They have no reader and no writer of their own: the level of the root logger, or what its manager
disables. Nobody lists them: a value counts if it is simple and has a public name, in a module,
in a class of the module, or in an object of such a class.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

_SIMPLE = (bool, int, float, str)
_DEPTH = 2  # of objects within objects: a class, the root logger in it

State = tuple[Any, ...]


class _Place(NamedTuple):
    """A value: its name in messages, its holder, and a function that reads it by its attribute."""

    name: str
    holder: Any
    attribute: str
    get: Callable[[str], Any]


def read_state() -> State:
    """Return all values, in an order of their own; None where one is not set."""
    return tuple([get(attribute) for _, _, attribute, get in _places()])


def write_state(before: State) -> None:
    """Give back the values that have changed since."""
    for place, value in _list_changes(read_state(), before):
        setattr(place.holder, place.attribute, value)


def changed_names(now: State, before: State) -> list[str]:
    """Return the names of the values that are others now; one that was not set may be set now."""
    return sorted(place.name for place, _ in _list_changes(now, before))


def _list_changes(now: State, before: State) -> Iterator[tuple[_Place, Any]]:
    for place, old, new in zip(_places(), before, now, strict=True):
        if new is not old and new != old and old is not None:
            yield place, old


@cache
def _places() -> tuple[_Place, ...]:
    """Return the places of the values in the standard modules that are loaded."""
    places: dict[str, _Place] = {}
    with warnings.catch_warnings():  # some are deprecated
        warnings.simplefilter("ignore")
        for name, module in sorted(sys.modules.items()):
            if _is_public_standard(name) and type(module) is ModuleType:
                own = _find(name, module, name, _DEPTH, {id(module)})
                places |= {place.name: place for place in own}
    return tuple(places.values())


def _is_public_standard(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in sys.stdlib_module_names and not any(p.startswith("_") for p in parts)


def _find(label: str, holder: Any, owner: str, depth: int, visited: set[int]) -> Iterator[_Place]:
    """Yield the values of an object, and of objects in it whose class its module defines."""
    for name, get in _readers(holder):
        value = get(name)
        if value is None or type(value) in _SIMPLE:
            yield _Place(f"{label}.{name}", holder, name, get)
        elif depth and getattr(value, "__module__", None) == owner and id(value) not in visited:
            visited.add(id(value))
            yield from _find(f"{label}.{name}", value, owner, depth - 1, visited)


def _readers(holder: Any) -> Iterator[tuple[str, Callable[[str], Any]]]:
    """Yield the public attributes that can be read and written, each with its reader."""
    own = getattr(holder, "__dict__", {})
    yield from ((name, own.get) for name in list(own) if not name.startswith("_"))
    if not isinstance(holder, ModuleType | type):
        for name, value in vars(type(holder)).items():
            if isinstance(value, property) and value.fset and not name.startswith("_"):
                yield name, partial(getattr, holder)
