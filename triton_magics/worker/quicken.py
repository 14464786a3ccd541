"""Triton's interpreter without the work that it repeats for nothing.

Each call of a device function of its own library (`tl.max`, `tl.sum`) patches the language anew,
which stays patched from the first such call on: half of a softmax's time in triton 3.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.runtime import interpreter

_LIBRARY = "triton.language.standard"


def quicken() -> None:
    """Patches the language once for each function of the library; again: nothing."""
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

    patch_lang.seen = seen  # type: ignore[attr-defined]
    interpreter._patch_lang = patch_lang
