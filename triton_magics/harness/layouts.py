"""Layouts of a tensor in memory: the strides and the offset that each one has.

A layout keeps the shape and the values; only `expanded` needs values that are equal along one
dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from triton_magics.model import CONTIGUOUS

Sizes = tuple[int, ...]

TRANSPOSED = "transposed"
STRIDED = "strided"  # every second column
PADDED_ROWS = "padded rows"
INTERLEAVED_HEADS = "interleaved heads"
EXPANDED = "expanded"
UNALIGNED = "unaligned"
_PADDING = 3  # odd, so that rows are not aligned


@dataclass(frozen=True)
class Placement:
    """Strides of a tensor, and its offset from an aligned address, in elements."""

    stride: Sizes
    offset: int = 0


def place(shape: Sizes, layout: str) -> Placement | None:
    """Return the placement of a tensor in a layout; None if the shape has no such layout.

    A shape has a layout if its placement differs from the contiguous one where it matters: in the
    offset, or in the stride of a dimension with more than one element.
    """
    stride = _contiguous(shape)
    if layout == CONTIGUOUS:
        return Placement(stride)
    if layout == UNALIGNED:
        return Placement(stride, offset=1)
    placement = Placement(_STRIDES[layout](shape) or stride)
    moved = any(n > 1 and a != b for n, a, b in zip(shape, placement.stride, stride, strict=True))
    return placement if moved else None


def available(shape: Sizes, *, is_mutated: bool = False) -> tuple[str, ...]:
    """Return the layouts that a tensor can have, the contiguous one first.

    Args:
        shape: of the tensor.
        is_mutated: a call writes to it, so its elements must not share memory.
    """
    excluded = {EXPANDED} if is_mutated else set()
    return tuple(name for name in LAYOUTS if name not in excluded and place(shape, name))


def empty(shape: Sizes, layout: str, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an uninitialized tensor in a layout, or a contiguous one if it has no such layout."""
    at = place(shape, layout) or Placement(_contiguous(shape))
    memory = torch.empty(at.offset + span(shape, at.stride), dtype=dtype, device=device)
    return memory.as_strided(shape, at.stride, at.offset)


def span(shape: Sizes, stride: Sizes) -> int:
    """Return the number of elements from the first to the last one of a strided tensor."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def equal_along_expanded(x: torch.Tensor, layout: str) -> torch.Tensor:
    """Return values that an `expanded` tensor can hold; other layouts hold any values."""
    if layout != EXPANDED or place(tuple(x.shape), EXPANDED) is None:
        return x
    dim = _expanded_dim(tuple(x.shape))
    return x.narrow(dim, 0, 1).expand(x.shape).contiguous()


def write(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Write values into a tensor of any layout, past its version counter."""
    for dim, (n, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if n > 1 and stride == 0:
            tensor, values = tensor.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    tensor.data.copy_(values)


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


def _transpose(shape: Sizes) -> Sizes | None:
    return _swap(shape, -2, -1) if len(shape) >= 2 and min(shape[-2:]) > 1 else None


def _every_second(shape: Sizes) -> Sizes | None:
    if not shape:
        return None
    wide = _contiguous((*shape[:-1], 2 * shape[-1] + 2 * _PADDING))
    return (*wide[:-1], 2)


def _pad_rows(shape: Sizes) -> Sizes | None:
    return _contiguous((*shape[:-1], shape[-1] + _PADDING)) if len(shape) >= 2 else None


def _interleave(shape: Sizes) -> Sizes | None:
    return _swap(shape, -3, -2) if len(shape) >= 3 and min(shape[-3:-1]) > 1 else None


def _expanded_dim(shape: Sizes) -> int:
    """Return the first dimension with more than one element; rows rather than columns."""
    return next((dim for dim, n in enumerate(shape) if n > 1), 0)


def _expand(shape: Sizes) -> Sizes:
    dim = _expanded_dim(shape)
    smaller = _contiguous(tuple(1 if i == dim else n for i, n in enumerate(shape)))
    return tuple(0 if i == dim else s for i, s in enumerate(smaller))


_STRIDES: dict[str, Callable[[Sizes], Sizes | None]] = {
    TRANSPOSED: _transpose,
    STRIDED: _every_second,
    PADDED_ROWS: _pad_rows,
    INTERLEAVED_HEADS: _interleave,
    EXPANDED: _expand,
}
LAYOUTS = (CONTIGUOUS, *_STRIDES, UNALIGNED)
