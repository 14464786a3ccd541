"""Many sets of inputs at one size, refilled with new contents for every round of a benchmark."""

from __future__ import annotations

from typing import Any

import torch

from triton_magics import ops
from triton_magics.model import Case, shape_of
from triton_magics.worker import oracle
from triton_magics.worker.cases import OWN, make_pristine
from triton_magics.worker.load import UserFault

MAX_SHARE = 0.3
MIN_SLOTS = 2


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

    def __init__(self, op: ops.Op, case: Case, device: torch.device, n: int) -> None:
        self.op, self.case, self.device = op, case, device
        first = make_pristine(op, case, device)
        self._sets = [first]
        size = sum(t.nbytes for t in _tensors(first)) or 1
        room = _free_bytes(device) * MAX_SHARE
        for i in range(1, max(MIN_SLOTS, min(n, int(room // size)))):
            other = case.model_copy(update={"seed": case.seed + i})
            self._sets.append(make_pristine(op, other, device))
        self._fresh = first
        self._answer: tuple[torch.Tensor, ...] | None = None
        self._next = 0
        self._outputs = [(t.shape, t.dtype) for t in oracle.outputs_of(op.reference(*first))]

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

    def next(self) -> tuple[Any, ...]:
        """The next set, with this round's contents."""
        self._next = (self._next + 1) % len(self._sets)
        held = self._sets[self._next]
        for old, new in zip(held, self._fresh, strict=True):
            if isinstance(old, torch.Tensor) and old.shape == new.shape:
                old.copy_(new)
        return tuple(
            o if isinstance(o, torch.Tensor) and o.shape == n.shape else n
            for o, n in zip(held, self._fresh, strict=True)
        )

    def poison(self) -> None:
        """Leaves NaN in the memory that the next output is likely to get."""
        for shape, dtype in self._outputs:
            torch.full(
                shape,
                float("nan") if dtype.is_floating_point else -1,
                dtype=dtype,
                device=self.device,
            )

    def wrong(self, value: Any, expected: oracle.Expected) -> str | None:
        """What is wrong with an output for this round's contents, or None."""
        if self.op.check is not None:
            return self.op.check(self._fresh, value, None)
        if self._answer is None:
            made = oracle.outputs_of(self.op.reference(*oracle.upcast(self._fresh)))
            self._answer = tuple(v.double() for v in made)
        got = oracle.outputs_of(value)
        for g, v, allowed in zip(
            got, self._answer, oracle.relax(expected, self._answer, self.op), strict=True
        ):
            judged = oracle.judge(g, v, allowed)
            if not judged.right:
                return f"{judged.error_share:.3g} times the error that is allowed"
        return None

    @property
    def outputs_bytes(self) -> int:
        """Bytes of one call's outputs."""
        return sum(shape.numel() * dtype.itemsize for shape, dtype in self._outputs)


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
