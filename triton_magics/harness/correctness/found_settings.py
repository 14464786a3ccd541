"""Settings of this process that a module reads with one function and writes with another.

Nobody lists them: a pair of names such as `get_num_threads` and `set_num_threads` is a setting. A
writer without a reader, such as `set_printoptions`, is one too: its code names what it writes.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy
import torch

_MODULES = (sys, gc, numpy, torch, torch.autograd, torch.backends.mha, torch._C)
_WRITTEN = ("torch", "numpy")
_READERS = ("get_", "get", "_get_", "is_", "are_")
_WRITERS = ("set_", "set", "_set_", "use_", "_set_sdp_use_")
_ENDS = ("", "_enabled", "_sdp_enabled")
_SIMPLE = (bool, int, float, str, torch.dtype)
_SUBNORMAL = 2.0**-130  # of float32


class Setting(NamedTuple):
    """A setting of this process: its name in messages, and functions that read and write it.

    `is_fault(now, before)` tells whether leaving it so is a fault of the version; a list names the
    parts that are.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], Any]
    is_fault: Callable[[Any, Any], bool | list[str]] = operator.ne

    def try_write(self, value: Any) -> None:
        """Write a value; a setting that can't be written now stays as it is."""
        with contextlib.suppress(Exception):
            self.write(value)


@cache
def found_settings() -> tuple[Setting, ...]:
    """Return the settings of Python, NumPy and torch that have a writer."""
    pairs = [each for module in _MODULES for each in _pairs(module)]
    flush = Setting(
        "the flushing of subnormal numbers", _flushes_subnormals, torch.set_flush_denormal
    )
    return (*pairs, flush, *_written_settings())


def _pairs(module: ModuleType) -> Iterator[Setting]:
    for name in dir(module):
        writer = next((w for w in _writers_of(name) if callable(getattr(module, w, None))), None)
        if writer is None:
            continue
        read, write = getattr(module, name), partial(_write, getattr(module, writer))
        if _is_readable(read):
            yield Setting(f"`{module.__name__}.{name}()`", read, write)


def _written_settings() -> Iterator[Setting]:
    """Yield the values that public writers of torch and NumPy write, each once.

    These are simple values of a writer's own module: global variables that its code stores, and
    attributes of the objects that it names.
    """
    places: set[tuple[int, str]] = set()
    for label, writer in _public_writers():
        for holder, name in _places_written_by(writer):
            if _is_simple(holder.get(name)) and (id(holder), name) not in places:
                places.add((id(holder), name))
                write = partial(holder.__setitem__, name)
                yield Setting(f"`{name}` of `{label}()`", partial(holder.get, name), write)


def _public_writers() -> Iterator[tuple[str, FunctionType]]:
    for module_name, module in sorted(sys.modules.items()):
        first, *rest = module_name.split(".")
        if first in _WRITTEN and not any(part.startswith("_") for part in rest):
            for name, value in list(vars(module).items()):
                if name.startswith("set_") and isinstance(value, FunctionType):
                    yield f"{module_name}.{name}", value


def _places_written_by(writer: FunctionType) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield dictionaries and the names in them that a writer's code may write."""
    home, code = writer.__globals__, writer.__code__
    stores = (i for i in dis.get_instructions(code) if i.opname == "STORE_GLOBAL")
    yield from ((home, str(i.argval)) for i in stores)
    for value in (home.get(name) for name in code.co_names):
        if type(value).__module__ == home["__name__"]:
            yield from ((vars(value), name) for name in getattr(value, "__dict__", ()))


def _writers_of(name: str) -> Iterator[str]:
    """Yield the names that the function which writes a setting may have."""
    for reader in (r for r in _READERS if name.startswith(r)):
        stem = name.removeprefix(reader)
        for end in (e for e in _ENDS if stem.endswith(e)):
            yield from (writer + stem.removesuffix(end) for writer in _WRITERS)


def _is_readable(read: Callable[[], Any]) -> bool:
    """Return whether a function without arguments gives a simple value, without a warning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return _is_simple(read())
    except Exception:  # noqa: BLE001 (a function of any module, which may need arguments or a GPU)
        return False


def _is_simple(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_simple, value.values()))
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(_is_simple, value))
    return value is None or isinstance(value, _SIMPLE)


def _write(writer: Callable[..., Any], value: Any) -> None:
    """Call a writer with what its reader gave: a tuple may stand for several arguments.

    torch raises a RuntimeError for an argument of another type.
    """
    try:
        if isinstance(value, dict):
            writer(**value)
        else:
            writer(value)
    except (TypeError, RuntimeError):
        if not isinstance(value, tuple):
            raise
        writer(*value)


def _flushes_subnormals() -> bool:
    number = torch.full((), _SUBNORMAL, dtype=torch.float32, device="cpu")
    return bool(number * 1.0 == 0.0)
