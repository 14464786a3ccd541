"""Compile a kernel once where several processes need it at the same time.

A kernel's key is known only within its launch, so Triton's cache takes the lock: a process that
finds no entry waits for the one that compiles it, and then reads its result.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import triton
from triton.runtime.cache import FileCacheManager

from triton_magics.languages import compile_cache

_launch = threading.local()  # `locks`: of the launch that this thread compiles


class OneCompiler(FileCacheManager):
    """Triton's cache; a missing kernel is locked until the end of its launch."""

    def get_group(self, filename: str) -> Any:
        """Return the files of a kernel; None if this process is to compile it."""
        group = super().get_group(filename)
        locks: ExitStack | None = getattr(_launch, "locks", None)
        if group or locks is None:
            return group
        locks.enter_context(compile_cache.one_at_a_time(self.key))
        return super().get_group(filename)


@contextmanager
def use() -> Iterator[None]:
    """Use this cache, unless the user has set another one (`TRITON_CACHE_MANAGER`)."""
    if triton.knobs.cache.manager_class is not None:
        yield
        return
    triton.knobs.cache.manager_class = OneCompiler
    try:
        yield
    finally:
        del triton.knobs.cache.manager_class


@contextmanager
def one_launch() -> Iterator[None]:
    """Release the locks of a launch at its end, also after an error of the compiler."""
    outer: ExitStack | None = getattr(_launch, "locks", None)
    with ExitStack() as locks:
        _launch.locks = locks
        try:
            yield
        finally:
            _launch.locks = outer


__all__ = ["one_launch", "use"]
