"""Faults of reductions and matrix products as changes of the reference: other parts, divisors.

A kernel adds up blocks. So it may leave blocks out, stop early, or divide by another length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from triton_magics.harness.correctness.reference_changes import (
    HALF_TYPES,
    Simple,
    bind,
    caster,
    describe,
    round_to_tf32,
)
from triton_magics.harness.correctness.reference_trace import TracedOperation
from triton_magics.model import CauseCode

_REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "logsumexp")
PRODUCTS = ("mm", "bmm", "matmul")
POWERS = tuple(2**n for n in range(4, 18))
BLOCKS = tuple(sorted({*POWERS, *(3 * 2**n for n in range(4, 10))}))
_SHORT = 5  # steps of a reduction below which few parts of it are evidence
_FORMULA = CauseCode.WRONG_FORMULA


def changes_of_reduction(o: TracedOperation) -> Iterator[Simple]:
    """Yield the changes of a reduction or a product; none of another operation."""
    if o.name in _REDUCTIONS and isinstance(o.args[0], torch.Tensor):
        yield from _other_reductions(o)
    if o.name in PRODUCTS:
        yield from _part_of_product(o)
    yield from _other_divisors(o)


def _other_reductions(o: TracedOperation) -> Iterator[Simple]:
    """Yield the reduction over other dimensions, other parts and of other kinds."""
    dims = _dims(o, o.args[0])
    others = {"sum": ("mean", "amax"), "mean": ("sum", "amax"), "amax": ("amin",)}
    for other in others.get(o.name, ()):
        change = partial(_over, getattr(torch, other), dims)
        yield _FORMULA, f"{describe(o)} is `{other}`", change
    yield from _over_other_dimensions(o, dims)
    if len(dims) == 1:
        yield from _over_parts(o, dims[0])


def _over(
    reduce: Callable[..., torch.Tensor], dims: Sequence[int], o: TracedOperation
) -> torch.Tensor:
    return _reduce(reduce, o.args[0], dims, like=o.result)


def _over_other_dimensions(o: TracedOperation, dims: list[int]) -> Iterator[Simple]:
    x, name = o.args[0], describe(o)
    reduce = getattr(torch, o.name)
    every = list(range(x.dim()))
    if len(dims) < x.dim():
        text = f"{name} goes over all elements, not over each row"
        yield _FORMULA, text, partial(_over, reduce, every)
        yield _FORMULA, f"{name} of the first row is used for every row", _of_first
        if o.name in ("sum", "mean", "amax") and dims == every[-1:]:
            for rows in (2, 4, 8, 16, 32, 64, 128):
                text = f"each {rows} rows share one {name}"
                yield _FORMULA, text, partial(_of_tile, o.name, rows)
    for dim in every:
        if [dim] != dims and len(dims) == 1 and x.shape[dim] == x.shape[dims[0]]:
            yield _FORMULA, f"{name} goes over dimension {dim}", partial(_over, reduce, [dim])


def _over_parts(o: TracedOperation, dim: int) -> Iterator[Simple]:
    name = describe(o)
    reduce_part = partial(_reduce, getattr(torch, o.name), like=o.result)
    if o.name in ("sum", "mean"):
        text = f"{name} takes the first 0 of {o.args[0].shape[dim]} elements"
        yield CauseCode.PARTIAL_EXTENT, text, lambda op: torch.zeros_like(op.result)
    if o.name in ("sum", "mean") and o.args[0].shape[dim] > 1:
        text = f"{name} takes its first element in place of each"
        yield CauseCode.WRONG_STRIDE, text, partial(_of_one_element, dim)
    is_extremum = o.name in ("amax", "amin")  # of a part it may be a missing maximum as well
    code = CauseCode.REACH if is_extremum else CauseCode.PARTIAL_EXTENT
    for text, places in parts_of(o.args[0].shape[dim]):
        part = partial(_reduce_part, reduce_part, dim, places)
        yield code, f"{name} takes {text}", part
    for lanes in lanes_past_the_end(o.args[0].shape[dim]) if o.name == "sum" else ():
        text = f"{name} takes {lanes} lanes past the end in, each as far from the mean as 0"
        yield CauseCode.MISSING_MASK, text, bind(_with_padded_squares, lanes)
    if o.name in ("amax", "amin"):
        fill = torch.maximum if o.name == "amax" else torch.minimum
        text = f"{name} takes a 0 in"
        yield CauseCode.WRONG_FILL, text, lambda op: fill(op.result, op.result * 0)


def _of_one_element(dim: int, o: TracedOperation) -> torch.Tensor:
    x = o.args[0]
    return o.call(x.narrow(dim, 0, 1).expand_as(x), *o.args[1:])


def _next_power(n: int) -> int:
    """Return the length of the block that holds n elements."""
    return 1 << (int(n) - 1).bit_length()


def lanes_past_the_end(n: int) -> list[int]:
    """Return how many lanes a block that holds n elements, or the last of several, has too many."""
    return sorted({_next_power(n) - n, *(-n % block for block in BLOCKS if block < 2048)} - {0})


def _with_padded_squares(o: TracedOperation, lanes: int) -> torch.Tensor:
    """Add the squares of lanes that hold 0 to a sum of squared distances.

    Raises:
        ValueError: it sums something else.
    """
    distance = squared_distances(o)
    if distance is None:
        raise ValueError("no sum of squared distances")
    mean = distance.args[1].reshape(o.result.shape)
    return o.result + lanes * mean * mean


def squared_distances(o: TracedOperation) -> TracedOperation | None:
    """Return the difference whose squares an operation adds up; None if it adds up others."""
    square = o.sources[0] if o.sources else None
    distance = square.sources[0] if square and square.name == "mul" else None
    return distance if distance and distance.name == "sub" else None


def _dims(o: TracedOperation, x: torch.Tensor) -> list[int]:
    dims = o.args[1] if len(o.args) > 1 else o.kwargs.get("dim")
    dims = [dims] if isinstance(dims, int) else dims
    return [d % max(x.dim(), 1) for d in dims] if dims else list(range(x.dim()))


def averages_last(o: TracedOperation) -> bool:
    """Return whether an operation is a mean over the last dimension."""
    return o.name == "mean" and o.args[0].dim() - 1 in _dims(o, o.args[0])


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


# --------------------------------------------------------------------------------- parts


def _reduce_part(
    reduce_part: Callable[..., torch.Tensor], dim: int, places: torch.Tensor, o: TracedOperation
) -> torch.Tensor:
    """Reduce a part; a mean is still divided by all elements."""
    x = o.args[0]
    share = len(places) / x.shape[dim] if o.name == "mean" else 1.0
    return reduce_part(x.index_select(dim, places), [dim]) * share


def parts_of(n: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield parts of n steps that whole blocks leave: a text, and the places."""
    every = torch.arange(n)
    if 1 < n < _SHORT:
        yield f"the first {n - 1} of {n} elements", every[:-1]
        yield f"the last {n - 1} of {n} elements", every[1:]
    if n < _SHORT:
        return
    ends = {n // b * b for b in BLOCKS} | {(n - 1) // b * b for b in BLOCKS} | {n - 1, n // 2}
    ends |= {n - b for b in BLOCKS} | set(BLOCKS)
    for end in sorted((e for e in ends if 0 < e < n), reverse=True):
        yield f"the first {end} of {n} elements", every[:end]
    starts = {1, *POWERS, *((n - 1) // b * b for b in POWERS)}
    for start in sorted(s for s in starts if 0 < s < n):
        yield f"the last {n - start} of {n} elements", every[start:]
    for block in (b for b in POWERS if b < n):
        for step in (2, 4):
            text = f"one of {step} blocks of {block} elements"
            yield text, every[every // block % step == 0]


def _part_of_product(o: TracedOperation) -> Iterator[Simple]:
    """Yield a matrix product over a part of its terms, or with an operand transposed."""
    a, b = o.args[:2]
    name = describe(o)
    nothing = (f"the first 0 of {a.shape[-1]} elements", torch.arange(0))
    for text, places in (*parts_of(a.shape[-1]), nothing):
        yield (
            CauseCode.PARTIAL_EXTENT, f"{name} takes {text} of each sum",
            bind(_product_of_part, places),
        )  # fmt: skip
    for block in (b for b in POWERS if b < a.shape[-1]):
        for i in (0, 1):
            text = f"operand {i + 1} of {name} stays at its first {block} terms"
            yield _FORMULA, text, partial(_staying, i, block)
    for i, x in enumerate((a, b)):
        if x.shape[-1] == x.shape[-2] > 1:
            text = f"{name} has its {('first', 'second')[i]} operand transposed"
            swap = (lambda op: op.args[0].mT @ op.args[1], lambda op: op.args[0] @ op.args[1].mT)[i]
            yield CauseCode.WRONG_STRIDE, text, swap
    for dtype, cast in (("TF32", round_to_tf32), *((n, caster(t)) for n, t in HALF_TYPES.items())):
        yield (
            CauseCode.LOWER_PRECISION, f"the operands of {name} are rounded to {dtype}",
            bind(lambda op, cast: cast(op.args[0]) @ cast(op.args[1]), cast),
        )  # fmt: skip


def _product_of_part(o: TracedOperation, places: torch.Tensor) -> torch.Tensor:
    a: torch.Tensor = o.args[0]
    b: torch.Tensor = o.args[1]
    return a.index_select(-1, places) @ b.index_select(-2, places)


def _staying(i: int, block: int, o: TracedOperation) -> torch.Tensor:
    a, b = o.args[:2]
    terms = torch.arange(a.shape[-1]) % block
    return a[..., terms] @ b if i == 0 else a @ b[..., terms, :]


# ---------------------------------------------------------------------------------- divisors


def _other_divisors(o: TracedOperation) -> Iterator[Simple]:
    """Yield a mean, or another quotient, by another length."""
    n = _divisor(o)
    if n is None or n < 1:
        return
    rows = o.result.numel()
    for words, other in (
        ("one less than the number of elements", n - 1),
        ("one more than the number of elements", n + 1),
        ("the length of a block that holds the elements", _next_power(n)),
        ("half the number of elements", n // 2),
        ("the number of rows", rows),
        *((f"the length of its blocks of {b}", -(-n // b) * b) for b in POWERS if b <= 1024),
    ):
        if other not in (0, n):
            text = f"{describe(o)} divides by {words}"
            yield _FORMULA, text, bind(lambda op, share: op.result * share, n / other)


def _divisor(o: TracedOperation) -> int | None:
    """Return the number of elements by which an operation divides."""
    if o.name == "mean" and isinstance(o.args[0], torch.Tensor):
        return math.prod(o.args[0].shape[d] for d in _dims(o, o.args[0]))
    if o.name == "div" and isinstance(o.args[1], int):
        return o.args[1]
    return None
