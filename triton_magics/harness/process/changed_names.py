"""Find functions and classes of shared modules that a version has replaced, and put them back.

The names of all modules of these packages are recorded before a version is loaded, and those of the
classes that they define. No list names what matters.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from triton_magics import languages
from triton_magics.harness.process.dict_versions import version_of

_SHARED_PACKAGES = (
    "builtins", "ctypes", "functools", "gc", "math", "numpy", "operator", "os", "statistics",
    "torch", "time", "triton_magics",
)  # fmt: skip
_OPERATORS = "triton_magics.operators"
_LANGUAGES = "triton_magics.languages."

# Before a version can replace them.
_all, _len, _map, _is = all, len, map, operator.is_
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: attributes can be set


@functools.cache
def _packages() -> frozenset[str]:
    own = (runtime.package for runtime in languages.used_runtimes() if runtime.package)
    return frozenset((*_SHARED_PACKAGES, *own))


@functools.cache
def _self_changing() -> tuple[str, ...]:
    """Return the modules in which names change without a version."""
    own = (module for r in languages.used_runtimes() for module in r.self_changing_modules)
    return (_OPERATORS, *own)


class Owner:
    """A module or class, and the functions and classes that it has by name.

    Attributes:
        names: a view of them as they are now.
        before: as they were when they were last taken for the right ones.
    """

    def __init__(self, label: str, owner: ModuleType | type) -> None:
        self.label, self.owner = label, owner
        self.names = vars(owner)
        self._version = version_of(self.names)
        self._take()

    def accept(self) -> None:
        """Take the names as they are now for the right ones."""
        if self._may_differ():
            self._take()

    def _take(self) -> None:
        self._version_before = self._version and self._version.value
        self.before = self.names.copy()

    def _may_differ(self) -> bool:
        return self._version is None or self._version.value != self._version_before

    def has_changed(self) -> bool:
        """Return whether a name has another value than before, be it code or not.

        Identity counts: a version's object may call itself equal to the one that it replaces.
        """
        if not self._may_differ():
            return False
        if _len(self.names) != _len(self.before):
            return True
        return not _all(_map(_is, self.names.values(), self.before.values()))

    def restore(self) -> list[str]:
        """Put replaced names back, and remove those that hide one of a base class."""
        now, code = self.names.copy(), {n: v for n, v in self.before.items() if _is_code(v)}
        changed = [name for name, value in code.items() if now.get(name) is not value]
        changed = [name for name in changed if not _is_own_change(self.label, now.get(name))]
        for name in changed:
            setattr(self.owner, name, code[name])
        if isinstance(self.owner, type):
            bases = self.owner.__mro__[1:]
            added = [n for n in now.keys() - code.keys() if any(n in vars(b) for b in bases)]
            added = [
                name for name in added
                if _is_code(now[name]) and not _is_own_change(self.label, now[name])
            ]  # fmt: skip
            for name in added:
                delattr(self.owner, name)
            changed += added
        self._take()
        return [f"{self.label}.{name}" for name in changed]


class NameRecord:
    """The functions and classes that shared modules define, at the time of construction."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated attributes warn when they are looked at
            self._owners = [Owner(label, owner) for label, owner in _owners()]

    def accept(self) -> None:
        """Take all names as they are now for the right ones, those of new languages too."""
        for each in self._owners:
            each.accept()
        labels = {each.label for each in self._owners}
        new = ((label, owner) for label, owner in _owners(_LANGUAGES) if label not in labels)
        self._owners += [Owner(label, owner) for label, owner in new]

    def restore(self) -> tuple[str, ...]:
        """Put replaced names back; return them, as `torch.cuda.streams.Event.elapsed_time`."""
        changed = [each for each in self._owners if each.has_changed()]
        return tuple(name for each in changed for name in each.restore())


def _owners(prefix: str = "") -> Iterator[tuple[str, ModuleType | type]]:
    """Yield the modules of the packages, and each class of theirs once.

    Args:
        prefix: of the modules' names.
    """
    listed: set[int] = set()
    for label, module in list(sys.modules.items()):
        if not label.startswith(prefix):
            continue
        if label.partition(".")[0] not in _packages() or label.startswith(_self_changing()):
            continue
        if not isinstance(module, ModuleType) or id(module) in listed:
            continue
        listed.add(id(module))
        yield label, module
        for name, value in list(vars(module).items()):
            if issubclass(type(value), type) and id(value) not in listed and _is_mutable(value):
                listed.add(id(value))
                yield f"{label}.{name}", value


def _is_own_change(label: str, value: Any) -> bool:
    """Return whether a package itself makes such a change, as torch does when it imports more."""
    function = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    if code is not None:
        return str(code.co_filename).startswith(_library_roots())
    return label.startswith("torch._C")


@functools.cache
def _library_roots() -> tuple[str, ...]:
    """Return the folders of the packages and of the standard library."""
    modules = (sys.modules.get(name) for name in _packages())
    files = (getattr(module, "__file__", None) for module in modules)
    return (*(f"{Path(file).parent}{os.sep}" for file in files if file), "<frozen")


def _is_mutable(value: type) -> bool:
    """Return whether attributes of a class can be set; those of most C classes can't."""
    module = str(value.__module__)
    is_ours = module.partition(".")[0] in _packages() and not module.startswith(_self_changing())
    return is_ours and bool(value.__flags__ & _HEAP_TYPE)


def _is_code(value: Any) -> bool:
    return callable(value) or type(value) in (property, staticmethod, classmethod)


__all__ = ["NameRecord"]
