"""Layouts of a tensor in memory: the strides and the offset that each one has.

A layout keeps the shape and the values; only the expanded and the overlapping ones need values that
are equal where elements share memory.

Strides differ from the contiguous ones in three ways: the dimensions have another order in memory,
one of them lies further apart (a slice of a longer one), or one has stride 0. `NOT_COMBINED`
completes the others: each dimension lies further apart in one, also in another order, and has
stride 0 in one; or all have stride 0 but one, or what is repeated is a column of a matrix, and has
steps. A drawn layout has any order, any gaps and a step: `permuted 1-2-0 gaps 0-3-1 step 2`.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from triton_magics.model import CONTIGUOUS, UNALIGNED

Sizes = tuple[int, ...]
Strides = Callable[[Sizes], Sizes | None]  # None: the shape has no such layout

TRANSPOSED = "transposed"
STRIDED = "strided"  # every second column
PADDED_ROWS = "padded rows"
INTERLEAVED_HEADS = "interleaved heads"
EXPANDED = "expanded"  # its first dimension
PADDED_MATRICES = "padded matrices"  # of the last two dimensions: x[:, :10] of a longer x
PADDED_BATCHES = "padded batches"
HEADERS = "batches behind headers"  # of three elements: no stride is a multiple of the others
PADDED_COLUMNS = "padded columns"  # transposed, with padded rows: x[:, :10].t() of a longer x
EVERY_SECOND_ROW = "every second row"  # also a half of rows that are twice as long
EXPANDED_ROWS = "expanded rows"  # each matrix has one row
EXPANDED_COLUMNS = "expanded columns"
EXPANDED_MATRICES = "expanded matrices"  # each batch has one
EXPANDED_BUT_ROWS = "expanded but rows"  # a number for each row, as a factor for each channel
EXPANDED_STRIDED = "expanded and strided"  # the row that is repeated is a column of a matrix
EXPANDED_ONE_COLUMN = "expanded column of a matrix"  # x[:, :1] of a matrix, repeated
# x[..., :1, :] of matrices, repeated: the gaps are as long as what is repeated, as if dense.
EXPANDED_ONE_ROW = "expanded row of a matrix"
# A sliding window, whose first and last element are as far apart as those of a dense tensor.
OVERLAPPING = "overlapping"
REVERSED = "reversed dimensions"
# In another order, and the first dimension further apart: a part of a longer cache or matrix.
INTERLEAVED_PADDED = "interleaved heads and padded batches"  # x[:, :10] of [batch, seq, heads, dim]
TRANSPOSED_PADDED = "transposed and padded matrices"
TRANSPOSED_STRIDED = "transposed and strided"  # no dimension has stride 1: x[:, ::2].t()
# Dimensions of one element have any stride: x[:, :1] of one long matrix is contiguous.
LOOSE_ONES = "loose lengths of one"
FAR_BATCHES = "2^30 elements apart"  # its first dimension: the third one begins past 2^31
PERMUTED = "permuted"  # and in which order, from the outermost dimension in memory to the innermost
_PERMUTED = re.compile(PERMUTED + r" ([\d-]+)(?: gaps ([\d-]+))?(?: step (\d+))?")
_GAPS = (0, 0, 0, 1, 3, 16)  # elements behind each dimension
_MOST_STEPS = 2
_FAR = 2**30
_PADDING = 3  # odd, so that rows are not aligned


@dataclass(frozen=True)
class Placement:
    """Strides of a tensor, and its offset from an aligned address, in elements."""

    stride: Sizes
    offset: int = 0


@functools.lru_cache(maxsize=4096)
def place(shape: Sizes, layout: str) -> Placement | None:
    """Return the placement of a tensor in a layout; None if the shape has no such layout.

    A shape has a layout if its placement differs from the contiguous one where it matters: in the
    offset, or in the stride of a dimension with more than one element. In `LOOSE_ONES` it is the
    stride of one with a single element.
    """
    stride = _contiguous(shape)
    if layout == CONTIGUOUS:
        return Placement(stride)
    if layout == UNALIGNED:
        return Placement(stride, offset=1)
    strides = _STRIDES.get(layout) or _permute(layout)
    placement = Placement(strides(shape) or stride)
    least = 0 if layout == LOOSE_ONES else 1
    moved = any(
        n > least and a != b for n, a, b in zip(shape, placement.stride, stride, strict=True)
    )
    return placement if moved else None


@functools.lru_cache(maxsize=4096)
def available(shape: Sizes, *, is_mutated: bool = False) -> tuple[str, ...]:
    """Return the layouts that a tensor can have, the contiguous one first.

    Args:
        shape: of the tensor.
        is_mutated: a call writes to it, so its elements must not share memory.
    """
    return tuple(
        name for name in LAYOUTS if place(shape, name) and not (is_mutated and repeats_values(name))
    )


def draw(n_dims: int, chance: random.Random) -> str:
    """Return a layout with any order of this number of dimensions, gaps behind some, and a step."""
    order = chance.sample(range(n_dims), n_dims)
    gaps = [chance.choice(_GAPS) if dim != order[0] else 0 for dim in range(n_dims)]
    step = chance.randint(1, _MOST_STEPS)
    words = [_name_order(order)]
    words += ["gaps", "-".join(map(str, gaps))] if any(gaps) else []
    words += ["step", str(step)] if step > 1 else []
    return " ".join(words)


def draw_dense(n_dims: int, chance: random.Random) -> str:
    """Return a layout without gaps, in an order that is not its own inverse if there is one."""
    orders = [*itertools.permutations(range(n_dims))]
    turned = [order for order in orders if any(order[at] != i for i, at in enumerate(order))]
    return _name_order(chance.choice(turned or orders))


def _name_order(order: Sequence[int]) -> str:
    return f"{PERMUTED} {'-'.join(map(str, order))}"


def repeats_values(layout: str) -> bool:
    """Return whether elements of a tensor in this layout share memory."""
    return layout.startswith(EXPANDED) or layout == OVERLAPPING


def empty(shape: Sizes, layout: str, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an uninitialized tensor in a layout, or a contiguous one if it has no such layout."""
    at = place(shape, layout) or Placement(_contiguous(shape))
    memory = torch.empty(at.offset + span(shape, at.stride), dtype=dtype, device=device)
    return memory.as_strided(shape, at.stride, at.offset)


def span(shape: Sizes, stride: Sizes) -> int:
    """Return the number of elements from the first to the last one of a strided tensor."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def equal_where_shared(x: torch.Tensor, layout: str) -> torch.Tensor:
    """Return values that a tensor whose elements share memory can hold; others hold any values.

    Of several values for one place the first one stays.
    """
    shape = tuple(x.shape)
    at = place(shape, layout) if repeats_values(layout) else None
    if at is None:
        return x
    if layout == OVERLAPPING:
        places = _places(shape, at.stride, x.device)
        first = torch.zeros(span(shape, at.stride), dtype=torch.int64, device=x.device)
        numbers = torch.arange(x.numel(), device=x.device)
        first.scatter_reduce_(0, places, numbers, "amin", include_self=False)
        return x.flatten()[first[places]].reshape(shape)
    once = x
    for dim, stride in enumerate(at.stride):
        once = once.narrow(dim, 0, 1) if stride == 0 and x.shape[dim] else once
    return once.expand(shape).contiguous()


def write(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Write values into a tensor of any layout, past its version counter."""
    once = without_repeats(tensor)
    own = values[tuple(slice(n) for n in once.shape)]
    if not _overlaps(once):
        once.data.copy_(own)
        return
    size, stride = tuple(once.shape), once.stride()
    memory = once.data.as_strided((span(size, stride),), (1,), once.storage_offset())
    memory[_places(size, stride, once.device)] = own.flatten()


def without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of an expanded tensor in which each element of its memory is once."""
    for dim, (n, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if n > 1 and stride == 0:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _places(shape: Sizes, stride: Sizes, device: torch.device) -> torch.Tensor:
    """Return for each element of a tensor, in order, its place in memory, from the first one on."""
    return torch.arange(span(shape, stride), device=device).as_strided(shape, stride).flatten()


def _overlaps(tensor: torch.Tensor) -> bool:
    """Return whether elements may share memory, though no stride is 0."""
    reach = 0
    for stride, n in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if n > 1 and stride <= reach:
            return True
        reach += (n - 1) * stride if n else 0
    return False


def _contiguous(shape: Sizes) -> Sizes:
    stride, step = [], 1
    for n in reversed(shape):
        stride.append(step)
        step *= max(n, 1)
    return tuple(reversed(stride))


def _swap(shape: Sizes, a: int, b: int) -> Sizes:
    """Return the strides of a contiguous tensor with two dimensions swapped, seen in order."""
    order = list(range(len(shape)))
    order[a], order[b] = order[b], order[a]
    inner = _contiguous(tuple(shape[i] for i in order))
    return tuple(inner[order.index(i)] for i in range(len(shape)))


def _every_second(shape: Sizes) -> Sizes | None:
    if not shape:
        return None
    wide = _contiguous((*shape[:-1], 2 * shape[-1] + 2 * _PADDING))
    return (*wide[:-1], 2)


def _pad(dim: int) -> Strides:
    """Return the strides where a dimension, counted from the end, is part of a longer one."""

    def strides(shape: Sizes) -> Sizes | None:
        if len(shape) < 1 - dim:
            return None
        longer = list(shape)
        longer[dim] += _PADDING
        return _contiguous(tuple(longer))

    return strides


def _put_headers(shape: Sizes) -> Sizes | None:
    if len(shape) < 3 or shape[0] < 2:
        return None
    first, *others = _contiguous(shape)
    return (first + _PADDING, *others)


def _double_rows(shape: Sizes) -> Sizes | None:
    return _contiguous((*shape[:-1], 2 * shape[-1])) if len(shape) >= 2 else None


def _of_columns(strides: Strides) -> Strides:
    """Return the strides of a tensor whose transpose has these."""

    def strides_of(shape: Sizes) -> Sizes | None:
        if len(shape) < 2 or min(shape[-2:]) < 2:
            return None
        inner = strides((*shape[:-2], shape[-1], shape[-2]))
        return inner and (*inner[:-2], inner[-1], inner[-2])

    return strides_of


def _transpose_padded(shape: Sizes) -> Sizes | None:
    if len(shape) < 3 or shape[-3] < 2:
        return None
    return _of_columns(_pad(-2))(shape)


def _interleave(shape: Sizes) -> Sizes | None:
    return _swap(shape, -3, -2) if len(shape) >= 3 and min(shape[-3:-1]) > 1 else None


def _interleave_padded(shape: Sizes) -> Sizes | None:
    """Return the strides of a part of [..., longer sequence, heads, dim], seen by heads."""
    if len(shape) < 4 or min(shape[-4:-1]) < 2:
        return None
    *first, seq, heads, dim = _pad(-3)((*shape[:-3], shape[-2], shape[-3], shape[-1])) or ()
    return (*first, heads, seq, dim)


def _reverse(shape: Sizes) -> Sizes | None:
    """Return the strides of all dimensions in the opposite order; of two they are transposed."""
    return _contiguous(shape[::-1])[::-1] if sum(n > 1 for n in shape) >= 3 else None


def _expand_first(shape: Sizes) -> Sizes:
    return _expand_at(shape, _first_long(shape))


def _first_long(shape: Sizes) -> int:
    """Return the first dimension with more than one element; rows rather than columns."""
    return next((dim for dim, n in enumerate(shape) if n > 1), 0)


def _expand_strided(expand: Strides) -> Strides:
    """Return the strides where the part that is repeated is a column of something larger."""

    def strides(shape: Sizes) -> Sizes | None:
        dense = expand(shape)
        has_steps = dense and any(s and n > 1 for n, s in zip(shape, dense, strict=True))
        return tuple(s * (1 + _PADDING) for s in dense) if dense and has_steps else None

    return strides


def _expand_at(shape: Sizes, dim: int) -> Sizes:
    smaller = _contiguous(tuple(1 if i == dim else n for i, n in enumerate(shape)))
    return tuple(0 if i == dim else s for i, s in enumerate(smaller))


def _expand(dim: int) -> Strides:
    """Return the strides where a dimension, counted from the end, has stride 0.

    The first one with more than one element has it in the layout `expanded`.
    """

    def strides(shape: Sizes) -> Sizes | None:
        own = len(shape) + dim
        return _expand_at(shape, own) if own > _first_long(shape) else None

    return strides


def _expand_but_rows(shape: Sizes) -> Sizes | None:
    if len(shape) < 3 or shape[-1] < 2 or shape[-2] < 2:
        return None
    return tuple(int(dim == len(shape) - 2) for dim in range(len(shape)))


def _expand_one_row(shape: Sizes) -> Sizes | None:
    if len(shape) < 3 or shape[-2] < 2:
        return None
    *first, _, last = _contiguous(shape)
    return (*first, 0, last)


def _overlap(shape: Sizes) -> Sizes | None:
    """Return the strides of matrices that share memory, with as many places as elements.

    Rows are closer together by what the steps within one make it longer.
    """
    if len(shape) < 2:
        return None
    rows, columns = (n - 1 for n in shape[-2:])
    both = math.gcd(rows, columns)
    if both < 2:
        return None
    return (*_contiguous(shape)[:-2], columns + 1 - columns // both, 1 + rows // both)


def _move_far(shape: Sizes) -> Sizes | None:
    """Return the strides where the first dimension of three lies very far apart."""
    return (_FAR, *_contiguous(shape)[1:]) if len(shape) >= 2 and shape[0] == 3 else None


def _permute(layout: str) -> Strides:
    """Return the strides of a drawn layout; other numbers of dimensions have none.

    Raises:
        ValueError: there is no such layout.
    """
    match = _PERMUTED.fullmatch(layout)
    if not match:
        raise ValueError(f"no such layout: {layout!r}")
    order, gaps = ([int(n) for n in (part or "").split("-") if n] for part in match.group(1, 2))

    def strides(shape: Sizes) -> Sizes | None:
        if sorted(order) != [*range(len(shape))]:
            return None
        stride, apart = [0] * len(shape), int(match.group(3) or 1)
        for dim in reversed(order):
            stride[dim] = apart
            apart *= max(shape[dim], 1) + (gaps[dim] if gaps else 0)
        return tuple(stride)

    return strides


def _loosen_ones(shape: Sizes) -> Sizes | None:
    """Return the strides with that of the whole for each dimension of one, but for the last."""
    if math.prod(shape) < 2 or 1 not in shape[:-1]:
        return None
    *first, last = zip(shape, _contiguous(shape), strict=True)
    return (*(math.prod(shape) if n == 1 else stride for n, stride in first), last[1])


_COMBINED: dict[str, Strides] = {
    TRANSPOSED: _of_columns(_contiguous),
    STRIDED: _every_second,
    PADDED_ROWS: _pad(-1),
    INTERLEAVED_HEADS: _interleave,
    EXPANDED: _expand_first,
}
_NOT_COMBINED: dict[str, Strides] = {
    PADDED_MATRICES: _pad(-2),
    PADDED_BATCHES: _pad(-3),
    HEADERS: _put_headers,
    PADDED_COLUMNS: _of_columns(_pad(-1)),
    EVERY_SECOND_ROW: _double_rows,
    EXPANDED_COLUMNS: _expand(-1),
    EXPANDED_ROWS: _expand(-2),
    EXPANDED_MATRICES: _expand(-3),
    EXPANDED_BUT_ROWS: _expand_but_rows,
    EXPANDED_STRIDED: _expand_strided(_expand_first),
    EXPANDED_ONE_COLUMN: _expand_strided(_expand(-1)),
    EXPANDED_ONE_ROW: _expand_one_row,
    OVERLAPPING: _overlap,
    REVERSED: _reverse,
    INTERLEAVED_PADDED: _interleave_padded,
    TRANSPOSED_PADDED: _transpose_padded,
    TRANSPOSED_STRIDED: _of_columns(_every_second),
    LOOSE_ONES: _loosen_ones,
}
_STRIDES = _COMBINED | _NOT_COMBINED | {FAR_BATCHES: _move_far}
NOT_COMBINED = tuple(_NOT_COMBINED)  # with all else, in a plan
# At once: others show which is mixed up.
OF_ALL_TENSORS = (INTERLEAVED_PADDED, TRANSPOSED_PADDED, EXPANDED_ONE_ROW, OVERLAPPING)
LAYOUTS = (CONTIGUOUS, *_COMBINED, UNALIGNED, *NOT_COMBINED)
