"""Faults of a kernel as changes of the reference: of one operation, of one input, of the output.

Each change is a guess. `matched_fault` keeps those that give the version's own output.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from triton_magics.harness.correctness.reference_trace import Apply, TracedOperation
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import CauseCode

HALF_TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
_REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "logsumexp")
_PRODUCTS = ("mm", "bmm", "matmul", "baddbmm")
_BLOCKS = tuple(2**n for n in range(4, 18))
_SHORT = 5  # steps of a reduction below which a part of it is no evidence

Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """A change of the reference.

    Attributes:
        code: the cause that it stands for.
        text: completes "the output is that of the reference if …".
        at: the index of the changed operation.
        apply: returns the result of this operation, given the parameter.
        inputs: returns the inputs of the reference, given the parameter.
        outputs: returns the outputs.
        start: of a parameter that is fitted; None without one.
        n_read: numbers that were read from the version's output.
        bits: of evidence beside the values.
    """

    code: CauseCode
    text: str
    at: int | None = None
    apply: Callable[[TracedOperation, float], torch.Tensor] | None = None
    inputs: Callable[[Inputs, float], Inputs] | None = None
    outputs: Callable[[torch.Tensor], torch.Tensor] | None = None
    start: float | None = None
    n_read: int = 0
    bits: float = 0.0

    @property
    def key(self) -> str:
        """Return what the change is for inputs of any shape and value."""
        return re.sub(r"[\d.]+", "#", self.text)

    def operation(self, amount: float) -> Apply | None:
        """Return how the operation at `at` is computed."""
        apply = self.apply
        return None if apply is None else lambda operation: apply(operation, amount)


def bind(function: Callable[..., Any], *values: Any) -> Callable[..., Any]:
    """Return a function with its last arguments set."""
    return lambda *args: function(*args, *values)


def replace_input(i: int, make: Callable[[Any, float], Any]) -> Callable[[Inputs, float], Inputs]:
    """Return the inputs with one of them replaced."""
    return lambda inputs, c: (*inputs[:i], make(inputs[i], c), *inputs[i + 1 :])


def describe(operation: TracedOperation) -> str:
    """Return a label such as `` `sub` number 2 ``."""
    number = f" number {operation.number}" if operation.number else ""
    return f"`{operation.name}`{number}"


# ------------------------------------------------------------------------------ operations


def changes_of(operations: Sequence[TracedOperation]) -> Iterator[Change]:
    """Yield the changes of each operation, those without a parameter first."""
    for at, operation in enumerate(operations):
        for code, text, apply in (
            *_skip(operation), *_exchange(operation), *_other_reductions(operation),
            *_part_of_product(operation), *_masks(operation), *_activations(operation),
            *_round(operation),
        ):  # fmt: skip
            yield Change(code, text, at, bind(lambda o, _, apply: apply(o), apply))
    for at, operation in enumerate(operations):
        for text, fitted, start in _with_parameter(operation):
            yield Change(CauseCode.WRONG_FORMULA, text, at, fitted, start=start)


_Simple = tuple[CauseCode, str, Apply]


def _tensors(operation: TracedOperation) -> list[torch.Tensor]:
    return [x for x in operation.args if isinstance(x, torch.Tensor)]


def _skip(o: TracedOperation) -> Iterator[_Simple]:
    """Yield the operation's arguments as its result."""
    name, result = describe(o), o.result
    if not result.dtype.is_floating_point:
        return
    shifts = _subtracts_maximum(o)
    for i, x in enumerate(o.args[:2]):
        if isinstance(x, torch.Tensor) and x.shape == result.shape and is_floating(x):
            code = CauseCode.MISSING_MAXIMUM if shifts else CauseCode.WRONG_FORMULA
            text = f"{name} is left out" if i == 0 else f"{name} gives its second argument"
            yield code, text, bind(lambda op, i: op.args[i], i)
    for i, source in enumerate(o.sources):
        if source is None or not source.args:
            continue
        before = source.args[0]
        if isinstance(before, torch.Tensor) and before.shape == o.args[i].shape:
            text = f"operand {i + 1} of {name} is taken before `{source.name}`"
            shifts = o.name == "exp" and _subtracts_maximum(source)
            code = CauseCode.MISSING_MAXIMUM if shifts else CauseCode.WRONG_FORMULA
            yield code, text, partial(_with_operand, i, before)
    if o.name == "reciprocal" or (o.name == "div" and not isinstance(o.args[0], torch.Tensor)):
        yield CauseCode.WRONG_FORMULA, f"{name} is left out", lambda op: op.args[-1]


def _with_operand(i: int, x: torch.Tensor, o: TracedOperation) -> torch.Tensor:
    """Call an operation with another tensor as argument i."""
    return o.call(*o.args[:i], x, *o.args[i + 1 :])


def _subtracts_maximum(o: TracedOperation) -> bool:
    """Return whether an operation subtracts a maximum that it was given."""
    source = o.sources[1] if o.name == "sub" and len(o.sources) > 1 else None
    return source is not None and source.name in ("amax", "max")


_EXCHANGED: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.sub, "sub": torch.add, "mul": torch.div, "div": torch.mul, "exp": torch.exp2,
    "log": torch.log2, "maximum": torch.minimum, "minimum": torch.maximum, "rsqrt": torch.sqrt,
    "sqrt": torch.rsqrt, "sin": torch.cos, "cos": torch.sin, "tanh": torch.sigmoid,
    "sigmoid": torch.tanh, "lt": torch.le, "le": torch.lt, "gt": torch.ge, "ge": torch.gt,
}  # fmt: skip


def _exchange(o: TracedOperation) -> Iterator[_Simple]:
    """Yield the operations that are easily taken for this one."""
    if other := _EXCHANGED.get(o.name):
        text = f"{describe(o)} is `{other.__name__}`"
        yield CauseCode.WRONG_FORMULA, text, lambda op: other(*op.args[:2])
    source = o.sources[0] if o.sources else None
    if o.name in ("rsqrt", "sqrt") and source and source.name == "add":
        added = source.args[1]
        if isinstance(added, float):
            inner = source.args[0]
            text = f"{added:.3g} is added after the square root, not before"
            yield CauseCode.WRONG_FORMULA, text, lambda op: _root_then_add(op, inner, added)


def _root_then_add(o: TracedOperation, inner: torch.Tensor, added: float) -> torch.Tensor:
    root = torch.sqrt(inner) + added
    return root.reciprocal() if o.name == "rsqrt" else root


def _other_reductions(o: TracedOperation) -> Iterator[_Simple]:
    """Yield the reduction over other dimensions, other parts and of other kinds."""
    if o.name not in _REDUCTIONS or not isinstance(o.args[0], torch.Tensor):
        return
    dims = _dims(o, o.args[0])
    if o.name in ("sum", "mean"):
        other = "mean" if o.name == "sum" else "sum"
        change = partial(_over, getattr(torch, other), dims)
        yield CauseCode.WRONG_FORMULA, f"{describe(o)} is `{other}`", change
    yield from _over_other_dimensions(o, dims)
    if len(dims) == 1:
        yield from _over_parts(o, dims[0])


def _over(
    reduce: Callable[..., torch.Tensor], dims: Sequence[int], o: TracedOperation
) -> torch.Tensor:
    return _reduce(reduce, o.args[0], dims, like=o.result)


def _over_other_dimensions(o: TracedOperation, dims: list[int]) -> Iterator[_Simple]:
    x, name, formula = o.args[0], describe(o), CauseCode.WRONG_FORMULA
    reduce = getattr(torch, o.name)
    every = list(range(x.dim()))
    if len(dims) < x.dim():
        text = f"{name} goes over all elements, not over each row"
        yield formula, text, partial(_over, reduce, every)
        yield formula, f"{name} of the first row is used for every row", _of_first
        if o.name in ("sum", "mean", "amax") and dims == every[-1:]:
            for rows in (2, 4, 8, 16, 32, 64, 128):
                text = f"each {rows} rows share one {name}"
                yield formula, text, partial(_of_tile, o.name, rows)
    for dim in every:
        if [dim] != dims and len(dims) == 1 and x.shape[dim] == x.shape[dims[0]]:
            yield formula, f"{name} goes over dimension {dim}", partial(_over, reduce, [dim])


def _over_parts(o: TracedOperation, dim: int) -> Iterator[_Simple]:
    name = describe(o)
    reduce_part = partial(_reduce, getattr(torch, o.name), like=o.result)
    for text, start, length in _parts(o.args[0].shape[dim]):
        part = partial(_reduce_narrow, reduce_part, dim, start, length)
        yield CauseCode.PARTIAL_EXTENT, f"{name} takes {text}", part
    if o.name == "sum" and (lanes := -o.args[0].shape[dim] % _power_of_two(o, dim)):
        text = f"{name} takes {lanes} lanes past the end in, each as far from the mean as 0"
        yield CauseCode.MISSING_MASK, text, bind(_with_padded_squares, lanes)
    if o.name in ("amax", "amin"):
        fill = torch.maximum if o.name == "amax" else torch.minimum
        text = f"{name} takes a 0 in"
        yield CauseCode.WRONG_FILL, text, lambda op: fill(op.result, op.result * 0)


def _power_of_two(o: TracedOperation, dim: int) -> int:
    """Return the block that holds all elements of a dimension."""
    return 1 << (int(o.args[0].shape[dim]) - 1).bit_length()


def _with_padded_squares(o: TracedOperation, lanes: int) -> torch.Tensor:
    """Add the squares of lanes that hold 0 to a sum of squared distances.

    Raises:
        ValueError: it sums something else.
    """
    square = o.sources[0]
    distance = square.sources[0] if square and square.name == "mul" else None
    if distance is None or distance.name != "sub":
        raise ValueError("no sum of squared distances")
    mean = distance.args[1].reshape(o.result.shape)
    return o.result + lanes * mean * mean


def _dims(o: TracedOperation, x: torch.Tensor) -> list[int]:
    dims = o.args[1] if len(o.args) > 1 else o.kwargs.get("dim")
    dims = [dims] if isinstance(dims, int) else dims
    return [d % max(x.dim(), 1) for d in dims] if dims else list(range(x.dim()))


def _reduce(
    reduce: Callable[..., torch.Tensor], x: torch.Tensor, dims: Sequence[int], *, like: torch.Tensor
) -> torch.Tensor:
    """Reduce with keepdim, and spread the result over the shape of another."""
    for dim in dims:
        x = reduce(x, dim, keepdim=True)
    if x.numel() == like.numel():
        return x.reshape(like.shape)
    return x.expand_as(like) if x.dim() == like.dim() else x.reshape(-1)[:1].expand(like.shape)


def _of_first(o: TracedOperation) -> torch.Tensor:
    return o.result.reshape(-1)[:1].expand(o.result.numel()).reshape(o.result.shape)


def _of_tile(kind: str, rows: int, o: TracedOperation) -> torch.Tensor:
    """Reduce tiles of rows; the rows past the end count as zeros, or as -inf for a maximum."""
    flat = o.args[0].reshape(-1, o.args[0].shape[-1])
    count = len(flat)
    fill = -math.inf if kind == "amax" else 0.0
    missing = flat.new_full((-count % rows, flat.shape[1]), fill)
    tiles = torch.cat([flat, missing]).reshape(-1, rows * flat.shape[1])
    reduced = tiles.amax(1) if kind == "amax" else getattr(tiles, kind)(1)
    return reduced.repeat_interleave(rows)[:count].reshape(o.result.shape)


def _reduce_narrow(
    reduce_part: Callable[..., torch.Tensor], dim: int, start: int, length: int, o: TracedOperation
) -> torch.Tensor:
    """Reduce a part; a mean is still divided by all elements."""
    x = o.args[0]
    share = length / x.shape[dim] if o.name == "mean" else 1.0
    return reduce_part(x.narrow(dim, start, length), [dim]) * share


def _parts(n: int) -> Iterator[tuple[str, int, int]]:
    """Yield parts of n steps that whole blocks leave: a text, the first step, the number."""
    if n < _SHORT:
        return
    ends = {n // b * b for b in _BLOCKS} | {(n - 1) // b * b for b in _BLOCKS} | {n - 1, n // 2}
    ends |= {n - b for b in _BLOCKS} | set(_BLOCKS)
    for end in sorted((e for e in ends if 0 < e < n), reverse=True):
        yield f"the first {end} of {n} elements", 0, end
    for start in (1, *_BLOCKS):
        if start < n:
            yield f"the last {n - start} of {n} elements", start, n - start


def _part_of_product(o: TracedOperation) -> Iterator[_Simple]:
    """Yield a matrix product over a part of its terms, or with an operand transposed."""
    if o.name not in _PRODUCTS or o.name == "baddbmm":
        return
    a, b = o.args[:2]
    name = describe(o)
    for text, start, length in _parts(a.shape[-1]):
        yield (
            CauseCode.PARTIAL_EXTENT, f"{name} takes {text} of each sum",
            bind(_product_of_part, start, length),
        )  # fmt: skip
    for block in (b for b in _BLOCKS if b < a.shape[-1]):
        for i in (0, 1):
            text = f"operand {i + 1} of {name} stays at its first {block} terms"
            yield CauseCode.WRONG_FORMULA, text, partial(_staying, i, block)
    for i, x in enumerate((a, b)):
        if x.shape[-1] == x.shape[-2] > 1:
            text = f"{name} has its {('first', 'second')[i]} operand transposed"
            swap = (lambda op: op.args[0].mT @ op.args[1], lambda op: op.args[0] @ op.args[1].mT)[i]
            yield CauseCode.WRONG_STRIDE, text, swap
    for dtype, cast in (("TF32", round_to_tf32), *((n, _caster(t)) for n, t in HALF_TYPES.items())):
        yield (
            CauseCode.LOWER_PRECISION, f"the operands of {name} are rounded to {dtype}",
            bind(lambda op, cast: cast(op.args[0]) @ cast(op.args[1]), cast),
        )  # fmt: skip


def _product_of_part(o: TracedOperation, start: int, length: int) -> torch.Tensor:
    a: torch.Tensor = o.args[0]
    b: torch.Tensor = o.args[1]
    return a.narrow(-1, start, length) @ b.narrow(-2, start, length)


def _staying(i: int, block: int, o: TracedOperation) -> torch.Tensor:
    a, b = o.args[:2]
    terms = torch.arange(a.shape[-1]) % block
    return a[..., terms] @ b if i == 0 else a @ b[..., terms, :]


def round_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """Round to ten bits after the point, as a TF32 product does."""
    bits = x.float().contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32).to(x.dtype)


def _caster(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x.to(dtype).to(x.dtype)


def _masks(o: TracedOperation) -> Iterator[_Simple]:
    """Yield a mask that is left out or one place off."""
    name = describe(o)
    formula = CauseCode.WRONG_FORMULA
    if o.name == "where" and len(o.args) == 3:
        yield formula, f"{name} masks nothing", lambda op: op.args[1].expand_as(op.result)
        yield formula, f"{name} masks everything", lambda op: op.args[2].expand_as(op.result)
    if o.name == "masked_fill":
        yield formula, f"{name} masks nothing", lambda op: op.args[0]
    if o.name in ("tril", "triu", "lt", "le", "gt", "ge", "logical_not") and o.result.dim() > 1:
        for by in (-1, 1):
            text = f"the mask of {name} is one place off"
            yield formula, text, bind(lambda op, by: torch.roll(op.result, by, -1), by)
    if o.name in ("tril", "triu"):
        diagonal = o.args[1] if len(o.args) > 1 else o.kwargs.get("diagonal", 0)
        for by in (-1, 1):
            text = f"the mask of {name} begins {'later' if by > 0 else 'earlier'} by one"
            yield formula, text, bind(lambda op, k: op.function(op.args[0], k), diagonal + by)


def _activations(o: TracedOperation) -> Iterator[_Simple]:
    """Yield other forms of functions that kernels write by hand."""
    formula = CauseCode.WRONG_FORMULA
    if o.name == "relu":
        text = "elements are multiplied by 0 or 1, and infinity times 0 is NaN"
        yield formula, text, lambda op: op.args[0] * (op.args[0] > 0)
        yield formula, "negative elements keep their magnitude", lambda op: op.args[0].abs()
        yield (
            CauseCode.NAN_LOST,
            "NaN becomes 0",
            lambda op: torch.nan_to_num(op.result, nan=0.0, posinf=math.inf, neginf=-math.inf),
        )
    if o.name == "erf":
        c = 2 / math.sqrt(math.pi)
        yield (
            formula,
            "`erf` is approximated by tanh of a cubic",
            lambda op: torch.tanh(c * (op.args[0] + 0.08943 * op.args[0] ** 3)),
        )
        yield (
            formula,
            "`erf` is approximated by a sigmoid",
            lambda op: torch.tanh(0.851 * math.sqrt(2) * op.args[0]),
        )


def _round(o: TracedOperation) -> Iterator[_Simple]:
    """Yield the result in a lower precision."""
    if o.result.dtype.is_floating_point:
        for dtype, kind in HALF_TYPES.items():
            text = f"{describe(o)} is rounded to {dtype}"
            yield CauseCode.LOWER_PRECISION, text, bind(lambda op, k: op.result.to(k), kind)


_Fitted = tuple[str, Callable[[TracedOperation, float], torch.Tensor], float]


def _with_parameter(o: TracedOperation) -> Iterator[_Fitted]:
    """Yield changes with a parameter, `{}` in the text, and where its search starts."""
    if not o.result.dtype.is_floating_point:
        return
    name = describe(o)
    yield f"{name} is {{}} times as large", lambda op, c: op.result * c, 1.0
    yield f"{{}} is added to {name}", lambda op, c: op.result + c, 0.0
    if o.name == "relu":
        text = "negative elements are multiplied by {}"
        yield text, lambda op, c: torch.where(op.args[0] < 0, op.args[0] * c, op.args[0]), 0.0
