"""Kernel languages by name.

The parent process uses parent halves only; a worker imports a runtime on its first use.
A package adds a language by an entry point of the group `triton_magics.languages`, which names a
`KernelLanguage`.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping, MutableMapping
from importlib import metadata
from typing import TYPE_CHECKING

from triton_magics.errors import Unavailable, UnknownName, did_you_mean
from triton_magics.languages.kernel_language import (
    Entry,
    KernelLanguage,
    TunableParameter,
    Tunables,
)

if TYPE_CHECKING:
    from triton_magics.languages.kernel_runtime import Instruments, KernelRuntime

GROUP = "triton_magics.languages"
DEFAULT = "triton"
_OWN = ("triton", "torch", "cuda", "torch_cuda", "multi_kernel")
_BUILT_IN = {name: f"triton_magics.languages.{name}:LANGUAGE" for name in _OWN}
_registered: dict[str, KernelLanguage] = {}
_runtimes: dict[str, KernelRuntime] = {}


def names() -> tuple[str, ...]:
    """Return the names of all known languages, the default first."""
    return tuple(dict.fromkeys((*_BUILT_IN, *_entry_points(), *_registered)))


def get(name: str = DEFAULT) -> KernelLanguage:
    """Return the parent half of a language.

    Raises:
        UnknownName: no such language; the message lists the known ones.
        Unavailable: the package of the language can't be used; the message says why.
    """
    if name in _registered:
        return _registered[name]
    if name in _BUILT_IN:
        return _load(_BUILT_IN[name])
    if name in _entry_points():
        loaded = _load_entry_point(name)
        if isinstance(loaded, str):
            raise Unavailable(loaded)
        return loaded
    near = did_you_mean(name, names())
    raise UnknownName(f"no kernel language {name!r}.{near} Known: {', '.join(names())}")


def available() -> tuple[KernelLanguage, ...]:
    """Return the known languages without those whose package can't be used."""
    problems = load_problems()
    return tuple(get(name) for name in names() if name not in problems)


def load_problems() -> dict[str, str]:
    """Return the languages whose package can't be used, each with the reason."""
    problems = {}
    for name in names():
        try:
            get(name)
        except Unavailable as error:
            problems[name] = str(error)
    return problems


def register(language: KernelLanguage) -> None:
    """Add a language to this process, under its own name.

    Workers are processes of their own: they find a language by its entry point.
    """
    _registered[language.name] = language


def refresh() -> None:
    """Search the installed packages again, after one was installed or removed."""
    _entry_points.cache_clear()
    _load_entry_point.cache_clear()


def unregister(name: str) -> None:
    """Remove a language that `register` added."""
    _registered.pop(name, None)
    _runtimes.pop(name, None)


def runtime(name: str = DEFAULT) -> KernelRuntime:
    """Return the child half of a language; its first use imports it.

    Raises:
        UnknownName: no such language.
    """
    if name not in _runtimes:
        _runtimes[name] = _attribute(get(name).runtime)()
    return _runtimes[name]


def used_runtimes() -> tuple[KernelRuntime, ...]:
    """Return the child halves of the default language and of those that this process has used."""
    runtime()
    return tuple(_runtimes.values())


def instruments() -> Instruments:
    """Import and return the kernels that timers measure themselves with."""
    return _attribute(get(DEFAULT).instruments)()  # type: ignore[no-any-return]


def set_worker_environment(
    mode: str, scratch: str | None, env: MutableMapping[str, str] = os.environ
) -> None:
    """Set the variables that the languages need in a worker, and remove those that they forbid.

    Args:
        mode: of the worker: gpu, interpreter or compiler.
        scratch: the worker's own folder; None: it has none.
        env: the worker's environment.
    """
    for language in available():
        for variable, value in language.worker_environment(mode, scratch).items():
            env.pop(variable, None)
            if value is not None:
                env[variable] = value


def is_interpreting(env: Mapping[str, str] = os.environ) -> bool:
    """Return True where kernels of the default language run in an interpreter on the CPU."""
    return get(DEFAULT).is_interpreting(env)


@functools.cache
def _load(path: str) -> KernelLanguage:
    return _attribute(path)  # type: ignore[no-any-return]


@functools.cache
def _load_entry_point(name: str) -> KernelLanguage | str:
    """Return a language of an installed package, or the reason why it can't be used."""
    try:
        language: KernelLanguage = _entry_points()[name].load()
    except Exception as error:  # noqa: BLE001 (a package of someone else may raise anything)
        return f"kernel language {name!r} can't be imported: {type(error).__name__}: {error}"
    if language.name != name:
        return f"kernel language {name!r} calls itself {language.name!r}: both names must agree"
    return language


def _attribute(path: str):  # type: ignore[no-untyped-def]
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


@functools.cache
def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


__all__ = [
    "DEFAULT",
    "GROUP",
    "Entry",
    "KernelLanguage",
    "TunableParameter",
    "Tunables",
    "available",
    "get",
    "instruments",
    "is_interpreting",
    "load_problems",
    "names",
    "refresh",
    "register",
    "runtime",
    "set_worker_environment",
    "unregister",
    "used_runtimes",
]
