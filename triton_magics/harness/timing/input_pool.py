"""Sets of inputs at one size, refilled with new contents for every round of a benchmark."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import all_outputs
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.process.device import GPU
from triton_magics.harness.timers.gated_timer import TimedCall
from triton_magics.harness.timing.timed_contents import (
    Contents,
    Inputs,
    OutputFault,
    TimedContents,
    forms_of,
)
from triton_magics.harness.version_call import BackwardPass
from triton_magics.model import CUSTOM_SIZE, Case, shape_of

MAX_SHARE = 0.3
MIN_SETS = 2
MAX_SETS = 256
SMALL_BYTES = 8 * 2**20
POISONED_BLOCKS = 16  # for each small output


def timing_case(op: operators.Op, size: str, dtype: str, seed: int) -> Case:
    """Return the case of a named size or of a custom shape (`8192x151936`).

    A flag among the op's scalars, such as a causal mask, has its first value: with both in turn a
    mean would be of two works.
    """
    custom = shape_of(size)
    return Case(
        shape=custom or op.sizes[size],
        dtype=dtype,
        size=CUSTOM_SIZE if custom else size,
        scalars=tuple((n, v[0]) for n, v in op.scalars.items() if isinstance(v[0], bool)),
        seed=seed,
    )


class InputPool:
    """Sets of inputs, each in its own storage, handed out in turn.

    Every round draws new contents. Each use copies some of them into the next set, so that no
    provider gets the same pointer or the same values twice in a row.
    """

    def __init__(
        self,
        op: operators.Op,
        case: Case,
        device: torch.device,
        n: int,
        *,
        small: int = 0,
        spread_bytes: int = 0,
        contents: Contents | None = None,
    ) -> None:
        """Allocate the sets, as far as memory allows and at most `MAX_SETS`.

        Args:
            op: the op.
            case: its shape and dtype; contents of the first round.
            device: where the inputs are.
            n: minimum number of sets.
            small: minimum number of sets of at most `SMALL_BYTES`.
            spread_bytes: minimum total size of all sets.
            contents: of the calls; by default drawn and judged in this process.
        """
        self.op, self.case, self.device = op, case, device
        first = make_pristine(op, case, device)
        self._sets = [first]
        size = sum(t.nbytes for t in _tensors(first)) or 1
        room = _free_bytes(device) * MAX_SHARE
        n = min(max(n, small if size <= SMALL_BYTES else 0, -(-spread_bytes // size)), MAX_SETS)
        for i in range(1, max(MIN_SETS, min(n, int(room // size)))):
            other = case.evolve(seed=case.seed + i)
            self._sets.append(make_pristine(op, other, device))
        self._contents = contents or TimedContents(op, case, device)
        self._draw = random.Random(f"{case.seed} turns")  # noqa: S311 (replayed from the seed)
        self._buffers: list[torch.Tensor] = []
        self._last = 0
        self._dirty = set(range(len(self._sets)))
        self._output_forms = self._contents.output_forms
        n_blocks = POISONED_BLOCKS if self.outputs_bytes <= SMALL_BYTES else 1
        self._poisoned_blocks = [
            deque([self._poisoned_tensor(*form) for _ in range(n_blocks)], n_blocks)
            for form in self._output_forms
        ]

    def __len__(self) -> int:
        return len(self._sets)

    def inputs(self, i: int) -> Inputs:
        """Return the i-th set of inputs."""
        return self._sets[i % len(self._sets)]

    def refill(self, seed: int, calls: int = 1) -> None:
        """Draw new contents for the next round, several if a run has several calls."""
        self._contents.draw(seed, several=calls > 1)

    def make_calls(self, function: Callable[..., Any], n: int) -> list[TimedCall]:
        """Return n calls of the function, each on the next set of inputs.

        A set is cleared before it gets its contents, and the memory that the output is likely to
        get is poisoned. The output is copied at the moment when the call has ended, and so are the
        inputs that the op changes: the next call on the set has its contents again.
        """
        buffers = self._output_buffers(n)
        order = [(self._last + 1 + i) % len(self._sets) for i in range(n)]
        self._last = order[-1]
        self._clear(order)
        numbers = self._choose_contents(order)
        return [
            self._make_call(function, index, [b[i] for b in buffers], numbers[index])
            for i, index in enumerate(order)
        ]

    def _choose_contents(self, order: Sequence[int]) -> dict[int, int]:
        """Return the number of the contents of each set: all of them in turn, then at random.

        A set has the same contents throughout a run, because a CUDA graph reads all sets at once.
        """
        sets = list(dict.fromkeys(order))
        numbers = self._draw.sample([*self._contents.current], len(self._contents.current))
        while len(numbers) < len(sets):
            others = [n for n in self._contents.current if n != numbers[-1]]
            numbers.append(self._draw.choice(others or numbers))
        return dict(zip(sets, numbers, strict=False))

    def _make_call(
        self, function: Callable[..., Any], index: int, buffers: list[torch.Tensor], number: int
    ) -> TimedCall:
        contents = self._contents.current[number].values
        prepared: list[Callable[[], Any]] = []
        pairs = list(zip(self._sets[index], contents, strict=True))
        refillable = [(old, new) for old, new in pairs if _can_hold(old, new)]
        inputs = tuple(old if _can_hold(old, new) else new for old, new in pairs)

        def before_gate() -> None:
            self._clear([index])
            self.poison()

        def fill_inputs() -> None:
            self._dirty.add(index)
            for old, new in refillable:
                old.copy_(new)
            if isinstance(function, BackwardPass):
                prepared[:] = [function.prepare(*inputs)]

        def copy_output(value: Any) -> Any:
            outputs = all_outputs(value, inputs, self.op.mutates)
            if forms_of(outputs) != self._output_forms:
                return outputs
            copies = tuple(b.copy_(o) for b, o in zip(buffers, outputs, strict=True))
            return copies[0] if isinstance(value, torch.Tensor) and len(copies) == 1 else copies

        return TimedCall(
            lambda: prepared.pop()() if prepared else function(*inputs),
            before_gate=before_gate,
            fill_inputs=fill_inputs,
            copy_output=copy_output,
            gate_key=function,
            content=number,
        )

    def _clear(self, indices: Iterable[int]) -> None:
        """Zero the sets in one launch, so that no right answer can be computed from them."""
        dirty = self._dirty.intersection(indices)
        self._dirty -= dirty
        if old := [t for i in dirty for t in _tensors(self._sets[i])]:
            torch._foreach_zero_(old)

    def _output_buffers(self, n: int) -> list[torch.Tensor]:
        """Return memory for the outputs of n calls, the same in every run."""
        if not self._buffers or len(self._buffers[0]) < n:
            self._buffers = [
                torch.empty((n, *shape), dtype=dtype, device=self.device)
                for shape, dtype in self._output_forms
            ]
        return self._buffers

    def poison(self) -> None:
        """Leave NaN in the memory that the next output is likely to get, a new block in each call.

        The block that was poisoned longest ago is released to the allocator.
        """
        for blocks in self._poisoned_blocks:
            shape, dtype = blocks[0].shape, blocks[0].dtype
            blocks.append(self._poisoned_tensor(shape, dtype))

    def _poisoned_tensor(self, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        value = float("nan") if dtype.is_floating_point else -1
        return torch.full(shape, value, dtype=dtype, device=self.device)

    def check_outputs(
        self, values: Sequence[Any], calls: Sequence[TimedCall], provider: str = ""
    ) -> OutputFault | None:
        """Return what is wrong with a provider's outputs since the last refill, or None."""
        return self._contents.check(values, [call.content for call in calls], provider)

    @property
    def outputs_bytes(self) -> int:
        """Return the size of one call's outputs, bytes."""
        return sum(shape.numel() * dtype.itemsize for shape, dtype in self._output_forms)


def _can_hold(old: Any, new: Any) -> bool:
    """Return whether a set can hold the value: a tensor of the same shape."""
    return isinstance(old, torch.Tensor) and old.shape == new.shape


def _tensors(values: tuple[Any, ...]) -> list[torch.Tensor]:
    return [v for v in values if isinstance(v, torch.Tensor)]


def _free_bytes(device: torch.device) -> int:
    return torch.cuda.mem_get_info()[0] if device.type == GPU.type else 2**33


def traffic(op: operators.Op, input_pool: InputPool) -> tuple[int | None, int | None]:
    """Return compulsory bytes (every tensor once) and operations of one call."""
    inputs = input_pool.inputs(0)
    flops = int(op.flops(*inputs)) if op.flops else None
    if op.bytes is not None:
        return int(op.bytes(*inputs, output=oracle.evaluate(op, inputs)[0])), flops
    return sum(t.nbytes for t in _tensors(inputs)) + input_pool.outputs_bytes, flops
