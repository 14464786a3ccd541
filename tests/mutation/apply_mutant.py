"""Let a module that is imported take on other code, everywhere that it is imported."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any, cast


def apply_source(module: ModuleType, source: str) -> None:
    """Give the module's functions, methods and constants those of another source.

    Functions keep their identity and get other code, so that whoever has imported one calls the
    new one. A constant is replaced in every module that has it under the same name.

    Args:
        module: imported already.
        source: its own, with a small change.
    """
    scratch = ModuleType(module.__name__)
    scratch.__file__ = module.__file__
    names = vars(scratch)
    originals = {key: sys.modules[key] for key in (module.__name__,)}
    sys.modules[module.__name__] = scratch  # dataclasses and pydantic look for it
    try:
        exec(compile(source, str(module.__file__), "exec"), names)
    finally:
        sys.modules.update(originals)
    for name, new in names.items():
        old = vars(module).get(name)
        if getattr(new, "__module__", None) == module.__name__ and old is not None:
            _take_over(old, new)
        elif _is_constant(new) and old != new:
            _replace_everywhere(name, old, new)


def _is_constant(value: object) -> bool:
    return isinstance(value, bool | int | float | str | tuple | frozenset | dict)


def _replace_everywhere(name: str, old: object, new: object) -> None:
    for module in list(sys.modules.values()):
        if vars(module).get(name) is old and not name.startswith("__"):
            setattr(module, name, new)


def _take_over(old: Any, new: Any) -> None:
    """Let a function or a class do what another one does."""
    if isinstance(old, type) and isinstance(new, type):
        for name, member in vars(new).items():
            if name in vars(old):
                _take_over(vars(old)[name], member)
        _take_over_defaults(old, new)
        return
    for attribute in ("fget", "func", "__func__", "__wrapped__", "wrapped"):
        inner, other = getattr(old, attribute, None), getattr(new, attribute, None)
        if isinstance(inner, FunctionType) and isinstance(other, FunctionType):
            _take_over(inner, other)
    if hasattr(old, "cache_clear"):
        old.cache_clear()
    if isinstance(old, FunctionType) and isinstance(new, FunctionType):
        if not new.__code__.co_freevars:  # the mutant may have dropped `super()`
            names = old.__code__.co_freevars
            old.__code__ = new.__code__.replace(co_freevars=names)
        elif new.__code__.co_freevars == old.__code__.co_freevars:
            old.__code__ = new.__code__
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__


def _take_over_defaults(old: type, new: type) -> None:
    """Let the fields of a pydantic model have the defaults of another one."""
    fields, others = (getattr(each, "__pydantic_fields__", {}) for each in (old, new))
    changed = [n for n in fields if n in others and fields[n].default != others[n].default]
    for name in changed:
        fields[name].default = others[name].default
    if changed:
        cast(Any, old).model_rebuild(force=True)
