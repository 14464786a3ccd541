"""Triton's interpreter without the work that it repeats for nothing.

Each call of a device function of its own library (`tl.max`, `tl.sum`) patches the language anew,
which stays patched from the first such call on: half of a softmax's time in triton 3.7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from triton.runtime import interpreter

_LIBRARY = "triton.language.standard"


def quicken() -> None:
    """Has the interpreter do each of these once; again: nothing."""
    _patch_once()
    _remember_dtypes()
    _no_overflow_checks()


def _no_overflow_checks() -> None:
    """An integer operation is not done a second time in int64: only debug mode looks at that."""
    builder: Any = getattr(interpreter, "interpreter_builder", None)
    options: Any = getattr(builder, "options", None)
    if getattr(options, "sanitize_overflow", False) and not options.debug:
        builder.options = dataclasses.replace(options, sanitize_overflow=False)


def _remember_dtypes() -> None:
    """NumPy's dtype for one of Triton's, by its name; the interpreter makes a table each time."""
    original: Callable[[Any], Any] | None = getattr(interpreter, "_get_np_dtype", None)
    if original is None or hasattr(original, "known"):
        return
    known: dict[str, Any] = {}

    def get_np_dtype(tt_dtype: Any) -> Any:
        name = str(tt_dtype.name)
        if name not in known:
            known[name] = original(tt_dtype)
        return known[name]

    get_np_dtype.known, get_np_dtype.original = known, original  # type: ignore[attr-defined]
    interpreter._get_np_dtype = get_np_dtype


def _patch_once() -> None:
    """Patches the language once for each function of the library."""
    original: Callable[[Any], Any] | None = getattr(interpreter, "_patch_lang", None)
    if original is None or hasattr(original, "seen"):
        return
    seen: set[Any] = set()

    def patch_lang(fn: Any) -> Any:
        if getattr(fn, "__module__", None) != _LIBRARY:
            return original(fn)
        if fn not in seen:
            seen.add(fn)
            return original(fn)
        return None

    patch_lang.seen, patch_lang.original = seen, original  # type: ignore[attr-defined]
    interpreter._patch_lang = patch_lang
