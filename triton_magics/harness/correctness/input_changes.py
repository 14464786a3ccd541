"""Faults of a kernel as changes of one input's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from triton_magics.harness.correctness.reference_changes import (
    HALF_TYPES,
    Change,
    Inputs,
    bind,
    replace_input,
    round_to_tf32,
)
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import CauseCode

_BLOCKS = tuple(2**n for n in range(5, 14))
_OF_INDICES = (torch.int32, torch.int64)


def changes_of_inputs(
    inputs: Inputs, names: Sequence[str], values: dict[str, tuple[Any, ...]]
) -> Iterator[Change]:
    """Yield changes of one argument.

    Args:
        inputs: of the reference.
        names: of the inputs.
        values: those that the op declares of its scalars.
    """
    for i, (name, x) in enumerate(zip(names, inputs, strict=False)):
        if isinstance(x, torch.Tensor):
            yield from _changes_of_tensor(i, names, inputs)
        elif isinstance(x, bool | int | float):
            yield from _changes_of_scalar(i, name, x, values.get(name, ()))


def changes_of_alike_inputs(inputs: Inputs, names: Sequence[str]) -> Iterator[Change]:
    """Yield inputs of one shape that are all read at the same other places."""
    tensors = [i for i, x in enumerate(inputs) if is_floating(x) and x.numel()]
    for shape in dict.fromkeys(inputs[i].shape for i in tensors):
        alike = tuple(i for i in tensors if inputs[i].shape == shape)
        if len(alike) > 1:
            label = " and ".join(names[i] for i in alike)
            for code, text, change in other_places(label, inputs[alike[0]]):
                yield Change(code, text, inputs=partial(_change_each, alike, change))


def _change_each(
    alike: tuple[int, ...],
    change: Callable[[torch.Tensor], torch.Tensor],
    inputs: Inputs,
    _: float,
) -> Inputs:
    return tuple(change(x) if i in alike else x for i, x in enumerate(inputs))


def _changes_of_scalar(i: int, name: str, x: float, declared: tuple[Any, ...]) -> Iterator[Change]:
    formula = CauseCode.WRONG_FORMULA
    others = (not x,) if isinstance(x, bool) else (*declared, 0 * x, 1 + 0 * x, -x, abs(x))
    for other in dict.fromkeys(v for v in others if v != x):
        yield Change(
            formula,
            f"{name} is {other}, not {x}",
            inputs=replace_input(i, bind(lambda _, c, v: v, other)),
            is_simple=True,
        )
    if isinstance(x, float):
        text = f"{name} is {{}}, not {x:.4g}"
        yield Change(formula, text, inputs=replace_input(i, lambda _, c: c), start=x)


def _changes_of_tensor(i: int, names: Sequence[str], inputs: Inputs) -> Iterator[Change]:
    name, x = names[i], inputs[i]
    if not x.numel() or x.dtype == torch.bool:
        return
    if not is_floating(x):
        for code, text, make in (*_other_indices(name, x), *other_places(name, x)):
            yield Change(
                code, text, inputs=replace_input(i, bind(lambda v, _, make: make(v), make))
            )
        if x.dtype not in _OF_INDICES:
            shift = replace_input(i, lambda v, c: v.double() + c)
            yield Change(
                CauseCode.WRONG_FORMULA, f"{{}} is added to {name}", inputs=shift, start=0.0
            )
        return
    for k, other in enumerate(inputs):
        if k != i and isinstance(other, torch.Tensor) and other.shape == x.shape:
            text = f"{names[k]} is read in place of {name}"
            change = partial(_read_other, i, k)
            yield Change(CauseCode.WRONG_FORMULA, text, inputs=change, is_simple=True)
            text = f"{name} and {names[k]} are exchanged"
            yield Change(CauseCode.WRONG_FORMULA, text, inputs=partial(_exchange, i, k))
    for code, text, make in (*_other_values(name, x), *other_places(name, x)):
        yield Change(code, text, inputs=replace_input(i, bind(lambda v, _, make: make(v), make)))


def _read_other(i: int, k: int, inputs: Inputs, _: float) -> Inputs:
    return (*inputs[:i], inputs[k], *inputs[i + 1 :])


def _exchange(i: int, k: int, inputs: Inputs, _: float) -> Inputs:
    order = [*range(len(inputs))]
    order[i], order[k] = k, i
    return tuple(inputs[j] for j in order)


def _pairs_as_halves(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[..., 0::2], x[..., 1::2]], -1)


def _halves_as_pairs(x: torch.Tensor) -> torch.Tensor:
    return torch.stack(x.chunk(2, -1), -1).flatten(-2)


def _reverse_half(x: torch.Tensor, which: int) -> torch.Tensor:
    halves = [*x.chunk(2, -1)]
    halves[which] = halves[which].flip(-1)
    return torch.cat(halves, -1)


def _roll_half(x: torch.Tensor, which: int, by: int) -> torch.Tensor:
    halves = [*x.chunk(2, -1)]
    halves[which] = halves[which].roll(by, -1)
    return torch.cat(halves, -1)


HALVES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "its halves exchanged": lambda x: torch.cat([*reversed(x.chunk(2, -1))], -1),
    "pairs of neighbours taken for its halves": _pairs_as_halves,
    "its halves taken for pairs of neighbours": _halves_as_pairs,
    "its first half in reverse order": bind(_reverse_half, 0),
    "its second half in reverse order": bind(_reverse_half, 1),
    "its second half one place off (later)": bind(_roll_half, 1, -1),
    "its second half one place off (earlier)": bind(_roll_half, 1, 1),
    "its first half one place off (later)": bind(_roll_half, 0, -1),
    "its first half one place off (earlier)": bind(_roll_half, 0, 1),
    "its first half in place of both": lambda x: torch.cat([x.chunk(2, -1)[0]] * 2, -1),
    "its second half in place of both": lambda x: torch.cat([x.chunk(2, -1)[1]] * 2, -1),
}
"""Other orders of a row of even length."""

_Simple = tuple[CauseCode, str, Callable[[torch.Tensor], torch.Tensor]]


def _other_values(name: str, x: torch.Tensor) -> Iterator[_Simple]:
    yield CauseCode.WRONG_FORMULA, f"{name} is 0", torch.zeros_like
    yield CauseCode.WRONG_FORMULA, f"{name} is 1", torch.ones_like
    if not bool(x.isfinite().all()):
        for text, make in _without_nonfinite(name):
            yield CauseCode.NAN_LOST, text, make
    yield CauseCode.LOWER_PRECISION, f"{name} is rounded to TF32", round_to_tf32
    for dtype, kind in HALF_TYPES.items():
        text = f"{name} is rounded to {dtype}"
        yield CauseCode.LOWER_PRECISION, text, bind(lambda v, k: v.to(k).to(v.dtype), kind)


def _other_indices(name: str, x: torch.Tensor) -> Iterator[_Simple]:
    """Yield integers as a kernel may take them: for an index, or with another sign."""
    formula, bits = CauseCode.WRONG_FORMULA, 8 * x.element_size()
    if bool((x < 0).any()):
        unsigned = bind(lambda v, whole: torch.where(v < 0, v.int() + whole, v.int()), 1 << bits)
        if bits < 32:
            yield formula, f"{name} is read as unsigned", unsigned
        yield formula, f"{name} has lost its sign", lambda v: v.int().abs()
        yield formula, f"what is negative in {name} is 0", lambda v: v.clamp(min=0)
    largest = int(x.max())
    for text, change in (
        ("one more", lambda v: (v + 1).clamp(max=largest)),
        ("one less", lambda v: (v - 1).clamp(min=0)),
        ("half", lambda v: torch.div(v, 2, rounding_mode="trunc")),  # as in a kernel
    ):
        is_index = x.dtype in _OF_INDICES
        yield CauseCode.WRONG_STRIDE if is_index else formula, f"{name} is {text}", change


def other_places(name: str, x: torch.Tensor) -> Iterator[_Simple]:
    """Yield a tensor as a kernel may read it: one index for all, one off, in another order."""
    place = CauseCode.WRONG_STRIDE
    for dim in range(x.dim()):
        if x.shape[dim] > 1:
            first = f"index 0 of dimension {dim} of {name} is read for every index"
            yield place, first, bind(lambda v, d: v.narrow(d, 0, 1).expand_as(v), dim)
            for by in (-1, 1):
                text = f"{name} is read one place off in dimension {dim}"
                yield place, text, bind(torch.roll, by, dim)
            halved = bind(lambda v, d: v.index_select(d, torch.arange(v.shape[d]) // 2), dim)
            yield place, f"{name} is read with the index of dimension {dim} halved", halved
            text = f"{name} is read in reverse order in dimension {dim}"
            yield place, text, bind(torch.flip, (dim,))
    yield from _repeated_places(name, x)
    yield from _other_halves(name, x)
    for dims in range(2, x.dim()):
        if sum(n > 1 for n in x.shape[:dims]) > 1:
            text = f"the first of the leading {dims} dimensions of {name} is read for every one"
            yield place, text, bind(lambda v, d: v[(slice(1),) * d].expand_as(v), dims)
    if x.dim() > 1 and x.shape[-1] > 1 and x.shape[-2] > 1:
        text = f"{name} is read with rows and columns exchanged"
        yield place, text, lambda v: v.mT.reshape(v.shape)
        text = f"{name} is read as if its columns lay behind each other"
        yield place, text, lambda v: v.reshape(v.mT.shape).mT


def _other_halves(name: str, x: torch.Tensor) -> Iterator[_Simple]:
    """Yield rows of two halves, of which a kernel may read others, or pairs in place of them."""
    half = x.shape[-1] // 2 if x.dim() > 1 else 0
    if half < 2 or x.shape[-1] % 2:
        return
    for words, function in HALVES.items():
        yield CauseCode.WRONG_STRIDE, f"each row of {name} is read with {words}", function
    for by in (-1, 1):
        text = f"the second half of each row of {name} is read one place off"
        side = "later" if by < 0 else "earlier"
        yield CauseCode.WRONG_STRIDE, f"{text} ({side})", bind(_shift_second_half, half, by)


def _shift_second_half(x: torch.Tensor, half: int, by: int) -> torch.Tensor:
    return torch.cat([x[..., :half], x.roll(by, -1)[..., half:]], -1)


def _repeated_places(name: str, x: torch.Tensor) -> Iterator[_Simple]:
    """Yield the tensor with its first block, or each of its elements, read again."""
    place, n = CauseCode.WRONG_STRIDE, x.numel()
    for block in (b for b in _BLOCKS if b < n):
        text = f"the first {block} elements of {name} are read for each block"
        yield place, text, bind(_read_flat, torch.arange(n) % block)
        if block < x.shape[-1]:
            text = f"the first {block} elements of each row of {name} are read for each block"
            columns = torch.arange(x.shape[-1]) % block
            yield place, text, bind(lambda v, columns: v[..., columns], columns)
    for times in (2, 4):
        text = f"each element of {name} is read {times} times"
        yield place, text, bind(_read_flat, torch.arange(n) // times)


def _read_flat(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return x.flatten()[places].reshape(x.shape)


def changes_past_the_end(
    inputs: Inputs, names: Sequence[str], output: torch.Tensor, *, averaged: Container[torch.Size]
) -> Iterator[Change]:
    """Yield rows that are longer than they are: lanes past their end take part.

    Args:
        inputs: of the reference.
        names: of the inputs.
        output: of the reference.
        averaged: shapes of what it takes the mean of, in the last dimension: there lanes of 0
            change nothing but the divisor.
    """
    for i, (name, x) in enumerate(zip(names, inputs, strict=False)):
        if not is_floating(x) or not x.dim() or not x.shape[-1]:
            continue
        n, sliced = x.shape[-1], output.shape == x.shape
        whole = (1 << (n - 1).bit_length()) - n
        outputs = bind(lambda v, n: v[..., :n], n) if sliced else None
        last = sorted({-n % block for block in (64, 128, 256, 512, 1024)} - {whole, 0})
        tries = [("0", None, whole), ("{}", 0.5, whole)] if whole else []
        tries += [("{}", 0.5, lanes) for lanes in last]
        for value, start, lanes in tries:
            text = f"{lanes} lanes of value {value} past the end of {name} take part"
            make = bind(_pad, lanes)
            change = replace_input(i, make)
            code = CauseCode.WRONG_FILL
            if x.shape in averaged and start is None:
                code, text = CauseCode.WRONG_FORMULA, f"each mean divides by {n + lanes}, not {n}"
            yield Change(code, text, inputs=change, outputs=outputs, start=start)


def _pad(x: torch.Tensor, value: float, lanes: int) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, lanes), value=value)


def _without_nonfinite(
    name: str,
) -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor]]]:
    inf = math.inf
    yield f"NaN in {name} is 0", lambda v: torch.where(v.isnan(), 0.0, v)
    yield f"NaN in {name} is -inf", lambda v: torch.where(v.isnan(), -inf, v)
    yield f"what is not finite in {name} is 0", lambda v: torch.where(v.isfinite(), v, 0.0)
    yield (
        f"NaN in {name} is its lowest value",
        lambda v: torch.nan_to_num(v, nan=-inf, posinf=inf, neginf=-inf),
    )
    largest = torch.finfo(torch.float32).max
    yield f"{name} is clamped to finite values", lambda v: v.clamp(-largest, largest)
