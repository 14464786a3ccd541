"""Races between the programs of one launch, found in the interpreter by shadow records.

The interpreter runs programs one after the other, so a race does not change its result. For each
element of a tensor the shadow has the last store and the first load of the current launch. Two
accesses of different programs to one element, at least one of them a store, are a race, unless

- the store leaves the element as it was: programs may store the same value,
- an atomic operation may order them: the first program executes one after its access, and the
  second one before its own. Locks and counters of finished programs are of this form.

Atomic operations themselves, and accesses of different launches, are no race.
"""

from __future__ import annotations

import bisect
import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from triton_magics.languages.kernel_runtime import GuardedTensor

Program = tuple[int, int, int]
Selection = Any
"""A slice, or an array of positions."""
_MOST_RECENT = 2**21  # positions


@dataclass
class Shadow:
    """Accesses to one tensor in the current launch, by element; -1 where there was none.

    Attributes:
        memory: the tensor's elements as integers.
        stores: twice the number of the last store, plus one if stores changed the element.
        loads: number of the first load; only of `recent` ones before the first store.
        recent: loads that are not in `loads` yet. Most tensors are never stored to.
    """

    tensor: GuardedTensor
    memory: Any
    stores: Any
    loads: Any
    recent: list[tuple[int, Selection]] = field(default_factory=list)
    is_stored: bool = False
    _n_recent: int = 0

    @classmethod
    def of(cls, tensor: GuardedTensor) -> Shadow:
        """Return the shadow of a tensor that was not accessed yet."""
        n_elements = tensor.n_bytes // tensor.itemsize
        raw = (ctypes.c_uint8 * (n_elements * tensor.itemsize)).from_address(tensor.start)
        dtype: np.dtype[Any] = np.dtype(f"u{tensor.itemsize}")
        memory = np.frombuffer(memoryview(raw), dtype=dtype)
        stores, loads = (np.full(n_elements, -1, np.int32) for _ in range(2))
        return cls(tensor, memory, stores, loads)

    def note_load(self, number: int, where: Selection) -> None:
        """Record a load."""
        self.recent.append((number, where))
        self._n_recent += 1 if isinstance(where, slice) else where.size
        if self.is_stored or self._n_recent > _MOST_RECENT:
            self.flush()

    def flush(self) -> None:
        """Enter the recent loads into `loads`, the oldest first."""
        for number, where in self.recent:
            loads = self.loads[where]
            self.loads[where] = np.where(loads < 0, number, loads)
        self.recent.clear()
        self._n_recent = 0


@dataclass(frozen=True)
class Race:
    """Two accesses of different programs to one element.

    Attributes:
        programs: in the order in which the interpreter ran them.
        verbs: of the two accesses: `stores` or `loads`.
        element: its position in the tensor.
    """

    programs: tuple[Program, Program]
    verbs: tuple[str, str]
    tensor: GuardedTensor
    element: int


@dataclass
class RaceDetector:
    """Record the accesses of a launch, and find the first race."""

    _shadows: dict[int, Shadow] = field(default_factory=dict)
    _programs: list[Program] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _last_atomic: dict[int, int] = field(default_factory=dict)
    _n_accesses: int = 0

    def start_launch(self) -> None:
        """Forget the accesses of the launch before."""
        self.__init__()  # type: ignore[misc]

    def start_program(self, program: Program) -> None:
        """Attribute the accesses from now on to another program."""
        self._programs.append(program)
        self._starts.append(self._n_accesses)

    def note_atomic(self) -> None:
        """Record an atomic operation of the current program."""
        self._n_accesses += 1
        self._last_atomic[len(self._starts) - 1] = self._n_accesses

    def load(self, tensor: GuardedTensor, addresses: Any) -> Race | None:
        """Record a load; return the race with an earlier store, if there is one."""
        shadow, where = self._shadow(tensor), select(tensor, addresses)
        number = self._next()
        shadow.note_load(number, where)
        if not shadow.is_stored:
            return None
        stores = shadow.stores[where]
        if stores.max() < 0:
            return None
        return self._race(stores >> 1, _has_changed(stores), ("stores", "loads"), shadow, where)

    def store(self, tensor: GuardedTensor, addresses: Any, values: Any) -> Race | None:
        """Record a store; return the race with an earlier access, if there is one.

        Args:
            tensor: that the addresses lie in.
            addresses: of the elements.
            values: that are stored there, with the size of the tensor's elements.
        """
        shadow, where = self._shadow(tensor), select(tensor, addresses)
        number = self._next()
        shadow.is_stored = True
        shadow.flush()
        stores, loads = shadow.stores[where], shadow.loads[where]
        changes = shadow.memory[where] != values.view(shadow.memory.dtype)
        if stores.max() < 0 and loads.max() < 0:
            shadow.stores[where] = 2 * number + changes
            return None
        race = self._race(stores >> 1, changes, ("stores", "stores"), shadow, where) or self._race(
            loads, changes, ("loads", "stores"), shadow, where
        )
        shadow.stores[where] = 2 * number + (changes | _has_changed(stores))
        return race

    def _next(self) -> int:
        self._n_accesses += 1
        return self._n_accesses

    def _shadow(self, tensor: GuardedTensor) -> Shadow:
        if tensor.start not in self._shadows:
            self._shadows[tensor.start] = Shadow.of(tensor)
        return self._shadows[tensor.start]

    def _race(
        self, earlier: Any, matters: Any, verbs: tuple[str, str], shadow: Shadow, where: Selection
    ) -> Race | None:
        """Return the first race of the current access with earlier ones, by their numbers."""
        by_others = (earlier >= 0) & (earlier <= self._starts[-1]) & matters
        if not by_others.any():
            return None
        positions = np.arange(shadow.memory.size)[where] if isinstance(where, slice) else where
        for number in np.unique(earlier[by_others]):
            index = bisect.bisect_left(self._starts, int(number)) - 1
            if not self._is_ordered(index, int(number)):
                element = int(positions[by_others & (earlier == number)][0])
                programs = self._programs[index], self._programs[-1]
                return Race(programs, verbs, shadow.tensor, element)
        return None

    def _is_ordered(self, index: int, number: int) -> bool:
        """Return True where atomic operations may order an earlier access before this one."""
        released = self._last_atomic.get(index, -1) > number
        return released and len(self._starts) - 1 in self._last_atomic


def _has_changed(stores: Any) -> Any:
    """Return where a store of this launch changed the element."""
    return (stores & 1 == 1) & (stores >= 0)


def select(tensor: GuardedTensor, addresses: Any) -> Selection:
    """Return the positions of the addresses in the tensor, as a slice where they are adjacent."""
    size, itemsize = addresses.size, tensor.itemsize
    first = (int(addresses[0]) - tensor.start) // itemsize
    span = int(addresses[-1]) - int(addresses[0])
    if span == (size - 1) * itemsize and (addresses[1:] - addresses[:-1] == itemsize).all():
        return slice(first, first + size)
    return (addresses.view(np.int64) - tensor.start) // itemsize


def message(race: Race, name: str) -> str:
    """Return `programs (0,0,0) and (1,0,0) both store to out_ptr[128]`.

    Args:
        race: that was found.
        name: of the tensor in the kernel.
    """
    first, second = (f"({x},{y},{z})" for x, y, z in race.programs)
    element = f"{name}[{race.element}]"
    if race.verbs == ("stores", "stores"):
        return f"race: programs {first} and {second} both store to {element}"
    return f"race: program {first} {race.verbs[0]} {element}, program {second} {race.verbs[1]} it"
