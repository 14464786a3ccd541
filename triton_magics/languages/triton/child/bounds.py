"""Loads and stores of the interpreter, checked against bounds and against other programs.

The bands around a tensor show that memory outside it was touched; this module finds the line. It
passes the accesses within a tensor on to the detector of races.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from time import monotonic, process_time  # now: a version may replace them
from typing import Any, NamedTuple

import numpy as np
from triton import language as tl
from triton.runtime.interpreter import InterpreterBuilder

from triton_magics.languages.kernel_runtime import (
    TOO_SLOW,
    BoundsCheck,
    GuardedTensor,
    MemoryFault,
    NeedsGpu,
)
from triton_magics.languages.triton.child import races


class _Method(NamedTuple):
    """A method of the builder: positions of its pointers, mask and values; what it does."""

    pointers: int
    mask: int | None
    values: int | None
    writes: bool
    is_atomic: bool = False


_METHODS = {
    "create_masked_load": _Method(0, 1, None, writes=False),
    "create_masked_store": _Method(0, 2, 1, writes=True),
    "create_atomic_rmw": _Method(1, 3, None, writes=True, is_atomic=True),
    "create_atomic_cas": _Method(0, None, None, writes=True, is_atomic=True),
}
_TRACKED_ITEMSIZES = (1, 2, 4, 8)
LOOK_S = 0.02  # between looks at the CPU time, each of which takes 2 to 130 us on a busy machine


@contextlib.contextmanager
def check_bounds(
    path: str,
    guards: Callable[[], Sequence[GuardedTensor]],
    *,
    limit_s: float | None = None,
) -> Iterator[BoundsCheck]:
    """Check the interpreter's accesses; the kernel runs on as it would.

    Args:
        path: the version's file, for the line.
        guards: the tensors that there are by now, each between its bands.
        limit_s: CPU time of this process after which an access raises `NeedsGpu`.
    """
    checker = _Checker(path, guards, limit_s)
    names = (*_METHODS, "set_grid_dim", "set_grid_idx")
    originals = {name: getattr(InterpreterBuilder, name) for name in names}
    for name, method in _METHODS.items():
        setattr(InterpreterBuilder, name, checker.observe_access(originals[name], method))
    InterpreterBuilder.set_grid_dim = checker.observe_launch(originals["set_grid_dim"])
    InterpreterBuilder.set_grid_idx = checker.observe_program(originals["set_grid_idx"])
    try:
        yield checker.faults
    finally:
        for name, original in originals.items():
            setattr(InterpreterBuilder, name, original)


class _Checker:
    """Checks each access before it happens.

    Attributes:
        faults: the first access outside a tensor, and the first race.
    """

    def __init__(
        self, path: str, guards: Callable[[], Sequence[GuardedTensor]], limit_s: float | None
    ) -> None:
        self.faults = BoundsCheck()
        self._limit_s = limit_s
        self._end_s = math.inf if limit_s is None else process_time() + limit_s
        self._next_look_s = math.inf if limit_s is None else monotonic()
        self._path = path
        self._guards = guards
        self._races = races.RaceDetector()

    def observe_launch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `set_grid_dim`, which starts a launch."""

        def set_grid_dim(builder: Any, *grid: int) -> None:
            self._races = races.RaceDetector()
            original(builder, *grid)

        return set_grid_dim

    def observe_program(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `set_grid_idx`, which starts a program."""

        def set_grid_idx(builder: Any, x: int, y: int, z: int) -> None:
            self._races.start_program((x, y, z))
            original(builder, x, y, z)

        return set_grid_idx

    def observe_access(self, original: Callable[..., Any], method: _Method) -> Callable[..., Any]:
        """Return a method that loads or stores, with the checks before it."""

        def access(builder: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_spent():
                raise NeedsGpu(f"{TOO_SLOW} {self._limit_s:g} s; a GPU is needed")
            if self.faults.outside is None and len(args) > max(method.pointers, method.mask or 0):
                self._check(method, args)
            return original(builder, *args, **kwargs)

        return access

    def _is_spent(self) -> bool:
        """Return whether the CPU time is spent, which is looked at once in `LOOK_S`."""
        now_s = monotonic()
        if now_s < self._next_look_s:
            return False
        self._next_look_s = now_s + LOOK_S
        return process_time() > self._end_s

    def _check(self, method: _Method, args: tuple[Any, ...]) -> None:
        pointers = args[method.pointers].data
        mask = _mask(args[method.mask].data, pointers) if method.mask is not None else None
        addresses = pointers.ravel() if mask is None else pointers[mask]
        if method.is_atomic:
            self._races.note_atomic()
        if not addresses.size:
            return
        guards = self._guards()
        tensor = _tensor_of(int(addresses.min()), int(addresses.max()), guards)
        if tensor is None:
            if fault := _outside(addresses, guards, writes=method.writes):
                self.faults.outside = MemoryFault(_line(self._path), fault)
            return
        if method.writes:
            self._note_stored(tensor, addresses)
        if self.faults.race is None and not method.is_atomic:
            values = args[method.values].data if method.values is not None else None
            self._check_race(tensor, addresses, _values_to_store(values, pointers, mask))

    def _note_stored(self, tensor: GuardedTensor, addresses: Any) -> None:
        """Record that these elements were stored to, in whatever launch."""
        stored = self.faults.stored.get(tensor.start)
        if stored is None:
            stored = np.zeros(tensor.n_bytes // tensor.itemsize, bool)
            self.faults.stored[tensor.start] = stored
        stored[races.select(tensor, addresses)] = True

    def _check_race(self, tensor: GuardedTensor, addresses: Any, values: Any | None) -> None:
        """Record an access, unless it has not the size of the tensor's elements."""
        size = tensor.itemsize
        if size not in _TRACKED_ITEMSIZES or (values is not None and values.itemsize != size):
            return
        if values is None:
            race = self._races.load(tensor, addresses)
        else:
            race = self._races.store(tensor, addresses, values)
        if race:
            text = races.message(race, _name_in_kernel(self._path, tensor))
            self.faults.race = MemoryFault(_line(self._path), text)


def _mask(mask: Any, pointers: Any) -> Any | None:
    """Return the mask of an access in the shape of its pointers; None if it is true everywhere."""
    # Of a block pointer it is an array, whose `data` is raw memory. The interpreter makes a mask of
    # integers where it joins one with a scalar's comparison.
    values = np.asarray(mask).astype(bool, copy=False)
    return None if values.all() else np.broadcast_to(values, pointers.shape)


def _values_to_store(values: Any | None, pointers: Any, mask: Any | None) -> Any | None:
    """Return the values that a store writes, one for each address; None for a load."""
    if values is None:
        return None
    values = np.broadcast_to(values, pointers.shape)
    return np.ascontiguousarray(values.ravel() if mask is None else values[mask])


def _tensor_of(low: int, high: int, guards: Sequence[GuardedTensor]) -> GuardedTensor | None:
    """Return the tensor that all addresses of an access lie in; None if there is no such one."""
    for guard in guards:
        if guard.start <= low and high < guard.start + guard.n_bytes:
            return guard
    return None


def _outside(addresses: Any, guards: Sequence[GuardedTensor], *, writes: bool) -> str | None:
    """Return a message where one of the addresses lies in a band."""
    for guard in guards:
        start, end = guard.start, guard.start + guard.n_bytes
        before = (addresses >= start - guard.band) & (addresses < start)
        after = (addresses >= end) & (addresses < guard.end)
        if before.any() or after.any():
            return _message(addresses, before, after, guard, writes=writes)
    return None


def _message(addresses: Any, before: Any, after: Any, guard: GuardedTensor, *, writes: bool) -> str:
    """Return `writes outside input 0: 3 elements after its end, the farthest by 2`."""
    size = guard.itemsize
    side, where = ("after its end", after) if after.any() else ("before its start", before)
    hit = addresses[where].astype(np.int64)
    far = (
        int(hit.max()) - (guard.start + guard.n_bytes)
        if after.any()
        else guard.start - int(hit.min()) - size
    )
    verb = "writes" if writes else "reads"
    count = f"{hit.size} elements" if hit.size > 1 else "an element"
    return f"{verb} outside {guard.label}: {count} {side}, the farthest by {far // size + 1}"


def _frames(path: str) -> Iterator[Any]:
    """Yield the frames of the version's file that are being executed, the innermost first."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == path:
            yield frame
        frame = frame.f_back


def _line(path: str) -> int:
    """Return the innermost line of the version's file that is being executed."""
    return next((int(frame.f_lineno) for frame in _frames(path)), 0)


def _name_in_kernel(path: str, tensor: GuardedTensor) -> str:
    """Return the name of the pointer to a tensor's start in the kernel; else the tensor's label."""
    for frame in _frames(path):
        for name, value in frame.f_locals.items():
            is_pointer = isinstance(value, tl.tensor) and value.type.is_ptr()
            if is_pointer and int(np.ravel(value.handle.data)[0]) == tensor.start:
                return str(name)
    return tensor.label
