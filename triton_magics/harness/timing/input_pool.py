"""Sets of inputs at one size, refilled with new contents for every round of a benchmark."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import all_outputs, outputs_of
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.judgement import is_within, judge
from triton_magics.harness.correctness.tolerance import ScaledTolerance
from triton_magics.harness.process.device import GPU
from triton_magics.harness.timers.gated_timer import TimedCall
from triton_magics.model import CUSTOM_SIZE, Case, shape_of

MAX_SHARE = 0.3
MIN_SETS = 2
MAX_SETS = 256
SMALL_BYTES = 8 * 2**20
POISONED_BLOCKS = 16  # for each small output
# Right answers in float64, and the allowed errors.
Answers = tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]


def timing_case(op: operators.Op, size: str, dtype: str, seed: int) -> Case:
    """Return the case of a named size or of a custom shape (`8192x151936`)."""
    if custom := shape_of(size):
        return Case(shape=custom, dtype=dtype, size=CUSTOM_SIZE, seed=seed)
    return Case(shape=op.sizes[size], dtype=dtype, size=size, seed=seed)


class InputPool:
    """Sets of inputs, each in its own storage, handed out in turn.

    Every round draws new contents. Each use copies them into the next set, so that no provider
    gets the same pointer or the same value twice in a row.
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
    ) -> None:
        """Allocate the sets, as far as memory allows and at most `MAX_SETS`.

        Args:
            op: the op.
            case: its shape and dtype; contents of the first round.
            device: where the inputs are.
            n: minimum number of sets.
            small: minimum number of sets of at most `SMALL_BYTES`.
            spread_bytes: minimum total size of all sets.
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
        self._answers: Answers | None = None
        self._tolerance: ScaledTolerance | None = None
        self._is_conditioned = False
        self._buffers: list[torch.Tensor] = []
        self._last = 0
        self._dirty = set(range(len(self._sets)))
        self._output_forms = [(t.shape, t.dtype) for t in oracle.evaluate(op, first)[1]]
        n_blocks = POISONED_BLOCKS if self.outputs_bytes <= SMALL_BYTES else 1
        self._poisoned_blocks = [
            deque([self._poisoned_tensor(*form) for _ in range(n_blocks)], n_blocks)
            for form in self._output_forms
        ]
        self.refill(case.seed)

    def __len__(self) -> int:
        return len(self._sets)

    def inputs(self, i: int) -> tuple[Any, ...]:
        """Return the i-th set of inputs."""
        return self._sets[i % len(self._sets)]

    def refill(self, seed: int) -> None:
        """Draw new contents for the next round."""
        self._contents = make_pristine(self.op, self.case.evolve(seed=seed), self.device)
        self._answers = None

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
        return [
            self._make_call(function, index, [b[i] for b in buffers])
            for i, index in enumerate(order)
        ]

    def _make_call(
        self, function: Callable[..., Any], index: int, buffers: list[torch.Tensor]
    ) -> TimedCall:
        pairs = list(zip(self._sets[index], self._contents, strict=True))
        refillable = [(old, new) for old, new in pairs if _can_hold(old, new)]
        inputs = tuple(old if _can_hold(old, new) else new for old, new in pairs)

        def before_gate() -> None:
            self._clear([index])
            self.poison()

        def fill_inputs() -> None:
            self._dirty.add(index)
            for old, new in refillable:
                old.copy_(new)

        def copy_output(value: Any) -> Any:
            outputs = all_outputs(value, inputs, self.op.mutates)
            if self._forms(outputs) != self._output_forms:
                return outputs
            copies = tuple(b.copy_(o) for b, o in zip(buffers, outputs, strict=True))
            return copies[0] if isinstance(value, torch.Tensor) and len(copies) == 1 else copies

        return TimedCall(
            lambda: function(*inputs),
            before_gate=before_gate,
            fill_inputs=fill_inputs,
            copy_output=copy_output,
            gate_key=function,
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

    @staticmethod
    def _forms(outputs: tuple[Any, ...]) -> list[tuple[torch.Size, torch.dtype]]:
        return [(o.shape, o.dtype) for o in outputs if type(o) is torch.Tensor]

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

    def check_outputs(self, values: Sequence[Any]) -> str | None:
        """Return what is wrong with the outputs of a run for this round's contents, or None.

        Outputs that all equal the first one are checked once.
        """
        if any(self._forms(outputs_of(v)) != self._output_forms for v in values):
            return "its shapes and dtypes are not those of the reference's output"
        distinct = values[:1] if _all_equal(values) else values
        return next((error for v in distinct if (error := self._check_output(v))), None)

    def _check_output(self, value: Any) -> str | None:
        if self.op.check is not None:
            return self.op.check(self._contents, value, None)
        outputs = outputs_of(value)
        self._answers = self._answers or self._compute_answers(with_conditioning=False)
        if not (error := _excess_error(outputs, *self._answers)):
            return None
        if not self._is_conditioned:
            self._answers = self._compute_answers(with_conditioning=True)
            error = _excess_error(outputs, *self._answers)
        return error

    def _compute_answers(self, *, with_conditioning: bool) -> Answers:
        """Return this round's answers in float64 and the allowed errors.

        Args:
            conditioned: whether the allowed errors include the condition of the inputs; computed
                only when an output is wrong without it.
        """
        if self._tolerance is None or with_conditioning > self._is_conditioned:
            self._is_conditioned = with_conditioning
            expected = oracle.compute_expected(
                self.op,
                self._contents,
                self.case,
                None,
                None,
                with_conditioning=with_conditioning,
                diagnose=False,
            )
            self._tolerance = ScaledTolerance.of(
                expected.values,
                expected.allowed,
                expected.tolerance.rtol,
                by_row=self.op.op_class != "elementwise",
            )
        references = oracle.evaluate(self.op, oracle.upcast(self._contents))[1]
        answers = oracle.double_floats(references)
        return answers, self._tolerance.allowed_errors(answers)

    @property
    def outputs_bytes(self) -> int:
        """Return the size of one call's outputs, bytes."""
        return sum(shape.numel() * dtype.itemsize for shape, dtype in self._output_forms)


def _all_equal(values: Sequence[Any]) -> bool:
    """Return whether all outputs of a run equal the first one; NaN equals nothing."""
    if len(values) == 1:
        return True
    columns = zip(*(outputs_of(v) for v in values), strict=True)
    stacked = [torch.stack(column) for column in columns]
    return all(bool((s == s[:1]).all()) for s in stacked)


def _excess_error(
    outputs: tuple[Any, ...], answers: tuple[torch.Tensor, ...], allowed: tuple[torch.Tensor, ...]
) -> str | None:
    for output, answer, error in zip(outputs, answers, allowed, strict=True):
        if is_within(output, answer, error):
            continue
        judged = judge(output, answer, error)
        if not judged.is_correct:
            return f"{judged.error_share:.3g} times the allowed error"
    return None


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
