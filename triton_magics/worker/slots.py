"""Many sets of inputs at one size, refilled with new contents for every round of a benchmark."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from triton_magics import ops
from triton_magics.model import Case, shape_of
from triton_magics.worker import oracle
from triton_magics.worker.cases import OWN, make_pristine
from triton_magics.worker.load import UserFault
from triton_magics.worker.timers import Call

MAX_SHARE = 0.3
MIN_SLOTS = 2
MAX_SLOTS = 256
SMALL_BYTES = 8 * 2**20
PLACES = 16  # of a small output
Judge = tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]  # answers, allowed errors


def case_of(op: ops.Op, size: str, dtype: str, seed: int) -> Case:
    """The case of a named size, or of a shape of the user's own (`8192x151936`).

    Raises:
        UserFault: the op changes its inputs, so that a run could not be repeated.
    """
    if op.mutates:
        raise UserFault(f"{op.name} changes its inputs (MUTATES); timing such ops: not yet")
    if own := shape_of(size):
        return Case(shape=own, dtype=dtype, size=OWN, seed=seed)
    return Case(shape=op.sizes[size], dtype=dtype, size=size, seed=seed)


class Slots:
    """Sets of inputs in storage of their own; a provider never gets the one it had before.

    Every round draws new contents; each use copies them into the next set, so that neither a
    pointer nor a value is seen twice in a row.
    """

    def __init__(
        self,
        op: ops.Op,
        case: Case,
        device: torch.device,
        n: int,
        *,
        small: int = 0,
        spread_bytes: int = 0,
    ) -> None:
        """At least n sets; more of small ones, or as large together as that; if there is room.

        No more than `MAX_SLOTS`.
        """
        self.op, self.case, self.device = op, case, device
        first = make_pristine(op, case, device)
        self._sets = [first]
        size = sum(t.nbytes for t in _tensors(first)) or 1
        room = _free_bytes(device) * MAX_SHARE
        n = min(max(n, small if size <= SMALL_BYTES else 0, -(-spread_bytes // size)), MAX_SLOTS)
        for i in range(1, max(MIN_SLOTS, min(n, int(room // size)))):
            other = case.model_copy(update={"seed": case.seed + i})
            self._sets.append(make_pristine(op, other, device))
        self._answer: Judge | None = None
        self._relaxed: oracle.Relaxed | None = None
        self._conditioned = False
        self._kept: list[torch.Tensor] = []
        self._next = 0
        self._dirty = set(range(len(self._sets)))
        self._outputs = [(t.shape, t.dtype) for t in oracle.outputs_of(op.reference(*first))]
        held = PLACES if self.outputs_bytes <= SMALL_BYTES else 1
        self._places = [
            deque([self._poisoned(*form) for _ in range(held)], held) for form in self._outputs
        ]
        self.refill(case.seed)

    def __len__(self) -> int:
        return len(self._sets)

    def pristine(self, i: int) -> tuple[Any, ...]:
        """The i-th set as it was made."""
        return self._sets[i % len(self._sets)]

    given = pristine

    def refill(self, seed: int) -> None:
        """New contents for the round to come."""
        self._fresh = make_pristine(
            self.op, self.case.model_copy(update={"seed": seed}), self.device
        )
        self._answer = None

    def calls(self, act: Callable[..., Any], n: int) -> list[Call]:
        """A run of calls, each on the next set.

        A set is cleared before it gets its contents, and the memory that the output is likely to
        get is poisoned; of the output a copy is taken at the moment when the call has ended.
        """
        kept = self._snapshots(n)
        order = [(self._next + 1 + i) % len(self._sets) for i in range(n)]
        self._next = order[-1]
        self._clear(order)
        return [self._call(act, which, [k[i] for k in kept]) for i, which in enumerate(order)]

    def _call(self, act: Callable[..., Any], which: int, kept: list[torch.Tensor]) -> Call:
        pairs = list(zip(self._sets[which], self._fresh, strict=True))
        alike = [(old, new) for old, new in pairs if _alike(old, new)]
        given = tuple(old if _alike(old, new) else new for old, new in pairs)

        def before() -> None:
            self._clear([which])
            self.poison()

        def fill() -> None:
            self._dirty.add(which)
            for old, new in alike:
                old.copy_(new)

        def snapshot(value: Any) -> Any:
            outputs = oracle.outputs_of(value)
            if self._forms(outputs) != self._outputs:
                return value
            copies = tuple(k.copy_(o) for k, o in zip(kept, outputs, strict=True))
            return copies[0] if isinstance(value, torch.Tensor) else copies

        return Call(lambda: act(*given), before=before, fresh=fill, kept=snapshot, of=act)

    def _clear(self, which: Iterable[int]) -> None:
        """Leaves nothing in those sets that a right answer could be made from, in one launch."""
        dirty = self._dirty.intersection(which)
        self._dirty -= dirty
        if old := [t for i in dirty for t in _tensors(self._sets[i])]:
            torch._foreach_zero_(old)

    def _snapshots(self, n: int) -> list[torch.Tensor]:
        """Memory for the outputs of n calls, the same in every run."""
        if not self._kept or len(self._kept[0]) < n:
            self._kept = [
                torch.empty((n, *shape), dtype=dtype, device=self.device)
                for shape, dtype in self._outputs
            ]
        return self._kept

    @staticmethod
    def _forms(outputs: tuple[Any, ...]) -> list[tuple[torch.Size, torch.dtype]]:
        return [(o.shape, o.dtype) for o in outputs if type(o) is torch.Tensor]

    def poison(self) -> None:
        """Leaves NaN in the memory that the next output is likely to get, each time in another.

        What is let go is what was poisoned longest ago, and held since.
        """
        for places in self._places:
            shape, dtype = places[0].shape, places[0].dtype
            places.append(self._poisoned(shape, dtype))

    def _poisoned(self, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        value = float("nan") if dtype.is_floating_point else -1
        return torch.full(shape, value, dtype=dtype, device=self.device)

    def wrong(self, values: Sequence[Any]) -> str | None:
        """What is wrong with the outputs of a run for this round's contents, or None.

        One that equals the first is as right as that one.
        """
        if any(self._forms(oracle.outputs_of(v)) != self._outputs for v in values):
            return "it is not of the shapes and dtypes that the reference's output has"
        judged = values[:1] if _all_equal(values) else values
        return next((said for v in judged if (said := self._wrong(v))), None)

    def _wrong(self, value: Any) -> str | None:
        if self.op.check is not None:
            return self.op.check(self._fresh, value, None)
        got = oracle.outputs_of(value)
        self._answer = self._answer or self._judged_by(conditioned=False)
        if not (said := _off(got, *self._answer)):
            return None
        if not self._conditioned:
            self._answer = self._judged_by(conditioned=True)
            said = _off(got, *self._answer)
        return said

    def _judged_by(self, *, conditioned: bool) -> Judge:
        """This round's answers in float64, and what an output may be off by.

        How far the answers move with the inputs is looked at only where an output is wrong
        without it.
        """
        if self._relaxed is None or conditioned > self._conditioned:
            self._conditioned = conditioned
            expected = oracle.expect(
                self.op, self._fresh, self.case, None, None, conditioned=conditioned, told=False
            )
            self._relaxed = oracle.Relaxed.of(expected, self.op)
        made = oracle.outputs_of(self.op.reference(*oracle.upcast(self._fresh)))
        answers = tuple(v.double() for v in made)
        return answers, self._relaxed.allowed(answers)

    @property
    def outputs_bytes(self) -> int:
        """Bytes of one call's outputs."""
        return sum(shape.numel() * dtype.itemsize for shape, dtype in self._outputs)


def _all_equal(values: Sequence[Any]) -> bool:
    """Whether all outputs of a run equal its first one; NaN equals nothing."""
    if len(values) == 1:
        return True
    columns = zip(*(oracle.outputs_of(v) for v in values), strict=True)
    stacked = [torch.stack(column) for column in columns]
    return all(bool((s == s[:1]).all()) for s in stacked)


def _off(
    got: tuple[Any, ...], answers: tuple[torch.Tensor, ...], allowed: tuple[torch.Tensor, ...]
) -> str | None:
    for g, v, a in zip(got, answers, allowed, strict=True):
        if oracle.within(g, v, a):
            continue
        judged = oracle.judge(g, v, a)
        if not judged.right:
            return f"{judged.error_share:.3g} times the error that is allowed"
    return None


def _alike(old: Any, new: Any) -> bool:
    """Whether a set can hold it; what is no tensor, or of another shape, is given as it is."""
    return isinstance(old, torch.Tensor) and old.shape == new.shape


def _tensors(values: tuple[Any, ...]) -> list[torch.Tensor]:
    return [v for v in values if isinstance(v, torch.Tensor)]


def _free_bytes(device: torch.device) -> int:
    return torch.cuda.mem_get_info()[0] if device.type == "cuda" else 2**33


def traffic(op: ops.Op, slots: Slots) -> tuple[int | None, int | None]:
    """Compulsory bytes (every tensor once) and operations of one call."""
    inputs = slots.pristine(0)
    flops = int(op.flops(*inputs)) if op.flops else None
    if op.bytes is not None:
        return int(op.bytes(*inputs, output=op.reference(*inputs))), flops
    return sum(t.nbytes for t in _tensors(inputs)) + slots.outputs_bytes, flops
