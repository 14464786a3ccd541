"""The verbs: one module each, found by its name.

A module `verbs/<name>.py` defines a request, `run(session, request)` and `VERB`. Magics, commands,
their help and completion, the methods of `Lab`, the functions of the package and the reference in
docs/ are derived from these. Modules that begin with an underscore are helpers. A verb whose name
is a word of Python has an underscore behind it as a module and as a method: `import_`.

Importing this package imports no verb: `names` and `cell_names` read file names and text only,
because `%load_ext` must be quick. `load` imports one verb, `every` imports all.
"""

from __future__ import annotations

import keyword
import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from triton_magics.errors import UnknownName, did_you_mean

if TYPE_CHECKING:
    from triton_magics.verbs._base import Verb

OLD_NAMES = {"write": "kernel", "export": "log", "take": "ops"}
"""Names that methods and commands had, which still work."""

_TAKES_CELL = "\n    takes_cell=True,\n"  # a line of the module's `VERB = Verb(...)`


@cache
def names() -> tuple[str, ...]:
    """Return the names of all verbs, sorted; imports none."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name.rstrip("_") for name in modules if not name.startswith("_")))


def method_name(name: str) -> str:
    """Return the name of a verb's method: `import_` of `import`."""
    return f"{name}_" if keyword.iskeyword(name) else name


def cell_names() -> tuple[str, ...]:
    """Return the names of the verbs that take a cell; imports none."""
    return tuple(name for name in names() if _TAKES_CELL in _text(name))


def _text(name: str) -> str:
    module = method_name(name)
    spec = next(m for m in pkgutil.iter_modules(__path__) if m.name == module)
    source: Any = spec.module_finder.find_spec(module, None)
    return source.loader.get_source(module) or "" if source and source.loader else ""


@cache
def load(name: str) -> Verb:
    """Import a verb.

    Args:
        name: its own, not an alias.

    Raises:
        UnknownName: no such verb.
    """
    if name not in names():
        raise UnknownName(f"no verb {name!r}.{did_you_mean(name, names())}")
    verb: Verb = import_module(f"{__name__}.{method_name(name)}").VERB
    return verb


@cache
def every() -> tuple[Verb, ...]:
    """Import all verbs; return them in the order of work."""
    return tuple(sorted(map(load, names()), key=lambda verb: (verb.rank, verb.name)))


def find(name: str) -> Verb | None:
    """Return the verb of a name, a command's or an older name; None where there is none."""
    name = OLD_NAMES.get(name, name).replace("-", "_")
    return load(name) if name in names() else None


def old_names(name: str) -> tuple[str, ...]:
    """Return the older names of a verb."""
    return tuple(old for old, new in OLD_NAMES.items() if new == name)


def is_failure(value: object) -> bool:
    """Return True for a verdict that is not `passed`.

    A version that was saved fails only where the compiler refused it.
    """
    from triton_magics.model import Status, Written

    verdict = getattr(value, "status", Status.PASSED)
    return bool(verdict.failed) if isinstance(value, Written) else verdict is not Status.PASSED


__all__ = [
    "OLD_NAMES",
    "cell_names",
    "every",
    "find",
    "is_failure",
    "load",
    "method_name",
    "names",
    "old_names",
]
