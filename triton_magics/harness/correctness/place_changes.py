"""Faults of a kernel as changes of places: strides, the output's order, limits of values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from triton_magics.harness.correctness.input_changes import HALVES
from triton_magics.harness.correctness.reference_changes import Change, Inputs, bind, replace_input
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import CauseCode


@dataclass(frozen=True)
class Memory:
    """The memory of an input, from its first element on, and its strides in elements."""

    elements: torch.Tensor
    stride: tuple[int, ...]

    @classmethod
    def of(cls, x: torch.Tensor) -> Memory:
        """Return the memory of a tensor on the CPU, in float64 so that it can hold NaN."""
        last = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
        return cls(x.as_strided((last + 1,), (1,)).cpu().double(), tuple(x.stride()))

    def views(self, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield the shape and strides of the tensor, and of its rows where they are one step."""
        yield shape, self.stride
        rows, steps = shape[:-1], self.stride[:-1]
        if len(rows) > 1 and all(
            a == b * n for a, b, n in zip(steps, steps[1:], rows[1:], strict=False)
        ):
            yield (math.prod(rows), shape[-1]), (steps[-1], self.stride[-1])

    def read(self, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
        """Read a tensor by other strides; NaN past the end."""
        places = torch.zeros(shape, dtype=torch.int64)
        for dim, step in enumerate(stride):
            index = torch.arange(shape[dim]) * step
            places += index.reshape(-1, *[1] * (len(shape) - dim - 1))
        inside = places < len(self.elements)
        values = self.elements[places.clamp(max=len(self.elements) - 1)]
        return torch.where(inside, values, math.nan)


def changes_of_strides(
    inputs: Inputs, names: Sequence[str], memory: Sequence[Memory | None]
) -> Iterator[Change]:
    """Yield each input as it would be read by other strides of its memory."""
    lengths = {n for x in inputs if isinstance(x, torch.Tensor) for n in x.shape}
    strides = {s for m in memory if m for s in m.stride}
    strides |= {s + by for s in strides for by in (-1, 1) if s > 1}
    for i, (name, x, own) in enumerate(zip(names, inputs, memory, strict=False)):
        if own is None or not isinstance(x, torch.Tensor):
            continue
        for shape, current in own.views(tuple(x.shape)):
            for stride in _other_strides(shape, current, {1, *lengths, *strides}):
                text = f"{name} is read by the strides {list(stride)}, not {list(current)}"
                make = partial(_read, own, shape, stride)
                yield Change(CauseCode.WRONG_STRIDE, text, inputs=replace_input(i, make))


def _read(
    memory: Memory, shape: tuple[int, ...], stride: tuple[int, ...], x: torch.Tensor, _: float
) -> torch.Tensor:
    values = memory.read(shape, stride).reshape(x.shape)
    return values.to(x.dtype) if is_floating(x) else values.nan_to_num(0.0).to(x.dtype)


def _other_strides(
    shape: tuple[int, ...], stride: tuple[int, ...], others: set[int]
) -> Iterator[tuple[int, ...]]:
    """Yield strides that a kernel may have in mind: contiguous ones, two exchanged, one other."""
    dense = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    listed = {_effective(shape, stride)}
    exchanged = [_swap(stride, i, j) for i in range(len(shape)) for j in range(i)]
    replaced = [
        (*stride[:d], other, *stride[d + 1 :])
        for d in range(len(shape)) for other in sorted(others) if other > 0
    ]  # fmt: skip
    for candidate in (dense, *exchanged, *replaced):
        if (effective := _effective(shape, candidate)) not in listed:
            listed.add(effective)
            yield candidate


def _effective(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides with those of dimensions of one element as 0."""
    return tuple(s if n > 1 else 0 for n, s in zip(shape, stride, strict=True))


def _swap(stride: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    changed = [*stride]
    changed[i], changed[j] = changed[j], changed[i]
    return tuple(changed)


def changes_beyond_limits(
    inputs: Inputs, names: Sequence[str], got: torch.Tensor, expected: torch.Tensor
) -> Iterator[Change]:
    """Yield changes of the output's elements beyond a limit, of the output or of an input.

    The limit is read from the version's output, so that it counts as a parameter.
    """
    formula = CauseCode.WRONG_FORMULA
    largest, smallest = float(got.max()), float(got.min())
    clamped = expected.isinf() & got.isfinite()
    if bool(clamped.any()):
        limit = float(got[clamped].abs().max())
        clamp = bind(torch.clamp, -limit, limit)
        text = f"infinities of the output become {limit:.4g}"
        yield Change(CauseCode.NAN_LOST, text, outputs=clamp, n_read=1)
        return
    if bool(got.isnan().any()):
        return
    for text, low, high in (
        (f"the output is at most {largest:.4g}", -math.inf, largest),
        (f"the output is at least {smallest:.4g}", smallest, math.inf),
    ):
        yield Change(formula, text, outputs=bind(torch.clamp, low, high), n_read=1)
    wrong = ~torch.isclose(got, expected, rtol=1e-2, atol=1e-6, equal_nan=True)
    for name, x in zip(names, inputs, strict=False):
        if not isinstance(x, torch.Tensor) or x.shape != got.shape or not bool(wrong.any()):
            continue
        values = got[wrong]
        is_x, is_one = (
            torch.equal(values.float(), x[wrong].float()),
            bool((values == values[0]).all()),
        )
        if not is_x and not is_one:
            continue
        value = name if is_x else f"{float(values[0]):.4g}"
        new = x.double() if is_x else values[0]
        for side, beyond in (("below", x <= x[wrong].max()), ("above", x >= x[wrong].min())):
            limit = float(x[wrong].max() if side == "below" else x[wrong].min())
            text = f"the output is {value} where {name} is at or {side} about {limit:.4g}"
            make = partial(_where, beyond, new)
            bits = _bits_of_choice(int(wrong.sum()), wrong.numel()) if beyond.equal(wrong) else 0.0
            yield Change(formula, text, outputs=make, n_read=1 if is_x else 2, bits=bits)


def _bits_of_choice(k: int, n: int) -> float:
    """Return how unlikely it is that k of n elements are those beyond a limit by chance."""
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return ways / math.log(2)


def _where(mask: torch.Tensor, new: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, new.to(output.dtype), output)


def changes_of_outputs(output: torch.Tensor, inputs: Inputs) -> Iterator[Change]:
    """Yield changes of the place of the output's elements."""
    alike = [isinstance(x, torch.Tensor) and x.shape == output.shape for x in inputs]
    if output.dim() > 1 and any(alike):
        yield Change(
            CauseCode.WRONG_FORMULA, "the last two dimensions are exchanged",
            inputs=lambda own, _: tuple(x.mT if a else x for x, a in zip(own, alike, strict=True)),
            outputs=lambda v: v.mT,
        )  # fmt: skip
    for dim in range(output.dim()):
        for by in (-1, 1):
            if output.shape[dim] > 2:
                text = f"the output is stored one place off in dimension {dim}"
                yield Change(
                    CauseCode.WRONG_STRIDE,
                    text,
                    outputs=bind(torch.roll, by, dim),
                )
    yield from _changes_of_halves(output, inputs)
    if output.dim() > 1 and output.shape[-1] > 1 and output.shape[-2] > 1:
        text = "the output is stored with rows and columns exchanged"
        yield Change(CauseCode.WRONG_STRIDE, text, outputs=lambda v: v.mT.reshape(v.shape))


def _changes_of_halves(output: torch.Tensor, inputs: Inputs) -> Iterator[Change]:
    """Yield outputs in other orders of a row's halves; input 1 may be read in the same one."""
    if output.dim() < 2 or output.shape[-1] % 2 or output.shape[-1] < 4:
        return
    orders = {**HALVES}
    for words, function in orders.items():
        text = f"each row of the output is stored with {words}"
        yield Change(CauseCode.WRONG_STRIDE, text, outputs=function)
    first = inputs[0]
    if isinstance(first, torch.Tensor) and first.shape == output.shape:
        pairs, halves = [*orders.values()][1:3]
        yield Change(
            CauseCode.WRONG_FORMULA, "pairs of neighbours in each row are taken for its halves",
            inputs=replace_input(0, lambda v, _: pairs(v)), outputs=halves,
        )  # fmt: skip
