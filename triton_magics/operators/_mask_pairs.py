"""Places of random masks that a fault couples in pairs: mirrored ones, and an exclusive or.

`draw[n - 1 - i] = 1 - draw[i]` couples mirrored places; the hash of `seed ^ i` gives another seed
the same mask at the places `i ^ d`. Each family is searched as a whole: a Fourier transform gives
the sums over the pairs of all centers, a Walsh-Hadamard transform those of all numbers of the
exclusive or. The few that are coupled most are then tested exactly, by pairs that share no element.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

N_MOST = 2  # of a family
LEAST = 8  # elements of a row
MOST_ELEMENTS = 2**20  # of a mask whose pairs are searched


class Pairs(NamedTuple):
    """Elements of two masks that may be coupled; no two pairs share one.

    Attributes:
        first, second: the elements, in the same order.
        readable: whether both can be read.
        n_tests: in the family, which share the probability of a false alarm.
        where: the pairs in words.
    """

    first: torch.Tensor
    second: torch.Tensor
    readable: torch.Tensor
    n_tests: int
    where: str


def most_coupled(
    first: torch.Tensor, second: torch.Tensor, readable: torch.Tensor, q: float
) -> Iterator[Pairs]:
    """Yield the pairs of each family that are coupled most, in memory and in each dimension.

    Of two masks these are pairs that differ by an exclusive or.

    Args:
        first, second: masks of one shape; the same tensor twice for the pairs within a mask.
        readable: where a kept element looks unlike a dropped one.
        q: probability that an element is kept.
    """
    if first.numel() > MOST_ELEMENTS:
        return
    dims = [d for d, n in enumerate(first.shape) if n < first.numel()]
    for dim in (None, *dims):
        rows = [_rows(mask, dim) for mask in (first, second, readable)]
        if rows[0].shape[-1] >= LEAST:
            where = "in memory" if dim is None else f"in dimension {dim}"
            if first is second:
                yield from _find_mirrored(rows[0], rows[2], q, where)
            yield from _find_exclusive_or(
                rows[0], rows[0 if first is second else 1], rows[2], q, where
            )
    if len(dims) > 1 and first is second:
        yield _pair_transposed(first, readable)


def _rows(mask: torch.Tensor, dim: int | None) -> torch.Tensor:
    """Return a mask as rows along a dimension, or as one row; shape [rows, elements]."""
    rows = mask.reshape(1, -1) if dim is None else mask.movedim(dim, -1)
    return rows.reshape(-1, rows.shape[-1])


def _deviations(
    first: torch.Tensor, second: torch.Tensor, readable: torch.Tensor, q: float
) -> list[torch.Tensor]:
    masks = (first,) if first is second else (first, second)
    return [(mask.float() - q) * readable for mask in masks]


def _find_mirrored(
    keep: torch.Tensor, readable: torch.Tensor, q: float, where: str
) -> Iterator[Pairs]:
    """Yield the pairs (i, c - i) of each row, for the sums c at which they are coupled most."""
    n = keep.shape[-1]
    spectrum = torch.fft.rfft((keep.float() - q) * readable, 2 * n)
    sums = torch.fft.irfft(spectrum.square().sum(0), 2 * n)[: 2 * n - 1]
    sizes = torch.arange(1, 2 * n, device=sums.device).clamp(max=n)
    sizes = torch.minimum(sizes, sizes.flip(0))
    for center in (sums.abs() / sizes.sqrt()).topk(N_MOST).indices.tolist():
        begin, end = max(0, center - n + 1), min(center, n - 1) + 1
        half = (end - begin) // 2
        left, right = slice(begin, begin + half), slice(end - half, end)
        yield Pairs(
            keep[:, left], keep[:, right].flip(1), readable[:, left] & readable[:, right].flip(1),
            2 * n, f"mirrored at {center / 2:g} {where}",
        )  # fmt: skip


def _find_exclusive_or(
    first: torch.Tensor, second: torch.Tensor, readable: torch.Tensor, q: float, where: str
) -> Iterator[Pairs]:
    """Yield the pairs (i, i ^ d) of each row, for the numbers d at which they are coupled most."""
    n = first.shape[-1]
    size = 1 << (n - 1).bit_length()
    waves = [
        _walsh_hadamard(torch.nn.functional.pad(x, (0, size - n)))
        for x in _deviations(first, second, readable, q)
    ]
    sums = _walsh_hadamard((waves[0] * waves[-1]).sum(0, keepdim=True))[0] / size
    is_there = (torch.arange(size, device=sums.device) < n).float()[None]
    sizes = _walsh_hadamard(_walsh_hadamard(is_there).square())[0] / size
    scores = sums[1:].abs() / sizes[1:].clamp(min=1).sqrt()
    places = torch.arange(n, device=sums.device)
    for number in (1 + scores.topk(N_MOST).indices).tolist():
        others = places ^ number
        chosen = others < n
        if first is second:
            chosen &= places < others
        here, there = places[chosen], others[chosen]
        both = readable[:, here] & readable[:, there]
        words = f"that differ by an exclusive or with {number} {where}"
        yield Pairs(first[:, here], second[:, there], both, size, words)


def _walsh_hadamard(rows: torch.Tensor) -> torch.Tensor:
    """Transform rows of a power of two of elements; twice gives the rows times that number."""
    n_rows, n = rows.shape
    half = 1
    while half < n:
        left, right = rows.reshape(n_rows, -1, 2, half).unbind(2)
        rows = torch.stack((left + right, left - right), 2).reshape(n_rows, n)
        half *= 2
    return rows


def _pair_transposed(keep: torch.Tensor, readable: torch.Tensor) -> Pairs:
    """Return the pairs (i, j) and (j, i) of the last two dimensions, of their square part."""
    i, j = torch.triu_indices(*[min(keep.shape[-2:])] * 2, 1, device=keep.device)
    both = readable[..., i, j] & readable[..., j, i]
    return Pairs(keep[..., i, j], keep[..., j, i], both, 1, "transposed")
