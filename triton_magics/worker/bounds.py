"""Loads and stores of the interpreter, checked against the exact bounds of every tensor.

The bands around a tensor tell that something outside it was touched; this tells by which line.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from triton.runtime.interpreter import InterpreterBuilder

from triton_magics.worker.guard import Guarded

# method of the builder -> positions of (pointers, mask); whether it writes
_ACCESSES = {
    "create_masked_load": (0, 1, False),
    "create_masked_store": (0, 2, True),
    "create_atomic_rmw": (1, 3, True),
    "create_atomic_cas": (0, None, True),
}


@dataclass(frozen=True)
class Outside:
    """An access outside its tensor: which line of the version's file, and what it did."""

    line: int
    message: str


@dataclass
class Bounds:
    """The first access outside a tensor, if there was one."""

    first: Outside | None = field(default=None)


@contextlib.contextmanager
def checking_bounds(path: str, guards: Callable[[], Sequence[Guarded]]) -> Iterator[Bounds]:
    """While this lasts, the interpreter's accesses are checked; the kernel runs on as it would.

    Args:
        path: the version's file, for the line.
        guards: the tensors that there are by now, each between its bands.
    """
    seen = Bounds()
    originals = {name: getattr(InterpreterBuilder, name) for name in _ACCESSES}

    def checked(name: str) -> Callable[..., Any]:
        original = originals[name]
        at, mask_at, writes = _ACCESSES[name]

        def access(self: Any, *args: Any, **kwargs: Any) -> Any:
            if seen.first is None and len(args) > max(at, mask_at or 0):
                mask = None if mask_at is None else args[mask_at].data
                seen.first = _outside(args[at].data, mask, guards(), path, writes=writes)
            return original(self, *args, **kwargs)

        return access

    for name in originals:
        setattr(InterpreterBuilder, name, checked(name))
    try:
        yield seen
    finally:
        for name, original in originals.items():
            setattr(InterpreterBuilder, name, original)


def _outside(
    pointers: Any, mask: Any, guards: Sequence[Guarded], path: str, *, writes: bool
) -> Outside | None:
    """The access as a finding, where one of its addresses lies in a band."""
    wanted = pointers if mask is None else pointers[np.broadcast_to(mask, pointers.shape)]
    if not wanted.size:
        return None
    low, high = int(wanted.min()), int(wanted.max())
    for guard in guards:
        start, end = guard.start, guard.start + guard.n_bytes
        if start <= low and high < end:
            return None  # the usual case: one tensor, all within
    for guard in guards:
        start, end = guard.start, guard.start + guard.n_bytes
        before = (wanted >= start - guard.band) & (wanted < start)
        after = (wanted >= end) & (wanted < guard.end)
        if before.any() or after.any():
            return Outside(_line(path), _message(wanted, before, after, guard, writes=writes))
    return None


def _message(wanted: Any, before: Any, after: Any, guard: Guarded, *, writes: bool) -> str:
    """`writes outside input 0: 3 elements after its end, the farthest by 2`."""
    size = guard.itemsize
    side, where = ("after its end", after) if after.any() else ("before its start", before)
    hit = wanted[where].astype(np.int64)
    far = (
        int(hit.max()) - (guard.start + guard.n_bytes)
        if after.any()
        else guard.start - int(hit.min()) - size
    )
    verb = "writes" if writes else "reads"
    count = f"{hit.size} elements" if hit.size > 1 else "an element"
    return f"{verb} outside {guard.label}: {count} {side}, the farthest by {far // size + 1}"


def _line(path: str) -> int:
    """The innermost line of the version's file that is being executed."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == path:
            return int(frame.f_lineno)
        frame = frame.f_back
    return 0
