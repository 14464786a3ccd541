"""Evaluate a reference with its sums added in float32, one term after the other.

A sum in float32 is off by the rounding of each of its partial sums. These may be far larger than
the sum itself, and where all terms are equal the errors have one direction. The result does not
show it, so the sums are added as a kernel may add them: in several orders, scaled, and as tensor
cores do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

import torch

from triton_magics.harness.correctness.judgement import finite_part
from triton_magics.harness.correctness.perturbed_arithmetic import PRODUCTS, ExpandedArithmetic

N_ORDERS = 8  # with 3, rows of one element are refused too often: their error may be 0 by chance
FEW_TERMS = 2**20
N_ORDERS_OF_MANY = 2  # forwards and backwards
FEW_TRUNCATED = 1024  # terms of a product
FLOAT8_TERMS, FLOAT8_BITS = 32, 13  # of one instruction of Hopper's tensor cores
FLOAT8_TERMS_IN_FLOAT32 = 128

_GOLDEN = 0.6180339887498949  # irrational: a term times it is rounded, even if the term is round
_FLOAT32_BITS = -(1 << 29)  # of a float64: sign, exponent, and the mantissa that float32 has

_aten = torch.ops.aten
_MEANS = (_aten.mean.default, _aten.mean.dim)
_SUMS = (_aten.sum.default, _aten.sum.dim_IntList, *_MEANS)


class AccumulatedSums(ExpandedArithmetic):
    """Add the terms of every sum, mean and matrix product in float32, in one order.

    A kernel may scale the terms first: divide them by their number, or take logarithms to base 2.
    The errors are others then, also where all terms are equal, whatever their order.

    Args:
        which: the number of the order: 0 forwards, 1 backwards, else a random one of scaled terms.

    Attributes:
        n_added: the sums so far. Those of many terms are added in the first orders only.
        n_products: how many of them are matrix products.
    """

    def __init__(self, which: int) -> None:
        super().__init__()
        self._which = which
        self.n_added = self.n_products = 0

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function, of the usual shape and dtype."""
        result = func(*args, **kwargs)
        if func not in _SUMS + PRODUCTS or not result.is_floating_point() or not result.numel():
            return result
        n_terms = args[0].numel() * (args[1].shape[-1] if func in PRODUCTS else 1)
        if self._which >= (N_ORDERS if n_terms <= FEW_TERMS else N_ORDERS_OF_MANY) or not n_terms:
            return result
        self.n_added += 1
        self.n_products += func in PRODUCTS
        add = self._add_product if func in PRODUCTS else self._add_elements
        scale = 1.0 if self._which < N_ORDERS_OF_MANY else 1.0 + self._which * _GOLDEN % 1
        total = add(args[0] * scale, *args[1:2]).double() / scale
        if func in _MEANS:
            total = total / (args[0].numel() // result.numel())
        return total.reshape(result.shape).to(result.dtype)

    def _add_elements(self, x: torch.Tensor, dim: list[int] | None = None) -> torch.Tensor:
        """Return the sums along some dimensions, or along all."""
        reduced = [d % x.dim() for d in dim or range(x.dim())]
        others = [d for d in range(x.dim()) if d not in reduced]
        n = math.prod(x.shape[d] for d in reduced)
        rows = x.permute(*others, *reduced).reshape(-1, n)
        return _add_last(rows[:, self._order(n, x.device)])

    def _add_product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a @ b."""
        places = self._order(a.shape[-1], a.device)
        a, b = a[..., places], b[..., places, :]
        if a.numel() * b.shape[-1] <= FEW_TERMS:
            return _add_last(a.unsqueeze(-2) * b.mT.unsqueeze(-3))
        return _add_columns_times_rows(a.float(), b.float())

    def _order(self, n: int, device: torch.device) -> torch.Tensor:
        """Return the order of n terms."""
        if self._which > 1:
            generator = torch.Generator(device).manual_seed(self._which)
            return torch.randperm(n, generator=generator, device=device)
        forwards = torch.arange(n, device=device)
        return forwards.flip(0) if self._which else forwards


class EverySecond(Enum):
    """The way in which every second product is added up, where not all are alike."""

    ALIKE = auto()
    EXACT = auto()
    BACKWARDS = auto()


class TruncatedProducts(ExpandedArithmetic):
    """Add the terms of every matrix product as tensor cores do.

    They add a few terms at once, and cut the partial sum off at float32's last place instead of
    rounding it. The errors have one direction: where terms of one sign are followed by terms of the
    other, they are as large as if nothing cancelled. A truncated sum of many groups was off by five
    times the error of any order of rounded sums (an H200, K = 8209).

    Args:
        group: terms that are added at once.
        every_second: how every second result is added up. A kernel may add up the logit of the
            target by itself, and scores of a row differ in their errors.
        share: of the error that results of more than FEW_TRUNCATED terms have. That of few groups
            is a matter of chance, and is taken whole.

    Attributes:
        n_added: the products so far.
    """

    def __init__(
        self, group: int, *, every_second: EverySecond = EverySecond.ALIKE, share: float = 1.0
    ) -> None:
        super().__init__()
        self._group, self._every_second, self._share = group, every_second, share
        self.n_added = 0

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function, of the usual shape and dtype."""
        result = func(*args, **kwargs)
        if func not in PRODUCTS or not result.is_floating_point() or not result.numel():
            return result
        self.n_added += 1
        a, b = args[:2]
        truncated = self.multiply(a, b).to(result.dtype)
        if self._every_second is not EverySecond.ALIKE:
            is_exact = self._every_second is EverySecond.EXACT
            other = result if is_exact else self.multiply(a.flip(-1), b.flip(-2)).to(result.dtype)
            number = torch.arange(result.numel(), device=result.device).reshape(result.shape)
            truncated = torch.where(number % 2 == 0, truncated, other)
        if self._share < 1 and a.shape[-1] > FEW_TRUNCATED:
            truncated = result + self._share * finite_part(truncated - result)
        return truncated

    def multiply(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a @ b in float64."""
        total = torch.zeros((), dtype=torch.float64, device=a.device)
        for columns, rows in _split(a.double(), b.double(), self._group):
            total = total + columns @ rows
            total.view(torch.int64).bitwise_and_(_FLOAT32_BITS)
        return total


class Float8Products(TruncatedProducts):
    """Add the terms of every matrix product as Hopper's tensor cores add those of float8.

    They align 32 terms and the sum so far to the largest of them, and cut each off 13 bits below
    its first bit. Sums of 128 terms are then added in float32, as kernels and cuBLAS do by choice
    (DeepSeek-V3 technical report, 2024, section 3.3.2).
    """

    def __init__(self) -> None:
        super().__init__(FLOAT8_TERMS_IN_FLOAT32)

    def multiply(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a @ b in float64, some rows of a at a time."""
        terms_a_row = FLOAT8_TERMS * b.numel() // b.shape[-2]
        parts = a.double().split(max(FEW_TERMS // terms_a_row, 1), -2)
        return torch.cat([self._multiply_rows(rows, b.double()) for rows in parts], -2)

    def _multiply_rows(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        total = a.new_zeros((*a.shape[:-1], b.shape[-1]), dtype=torch.float32)
        for several in _split(a, b, self._group):
            part = total.new_zeros((*total.shape, 1), dtype=torch.float64)
            for columns, rows in _split(*several, FLOAT8_TERMS):
                terms = columns.unsqueeze(-2) * rows.mT.unsqueeze(-3)
                part = _add_aligned(torch.cat((part, terms), -1), FLOAT8_BITS)
            total += part.squeeze(-1)
        return total.double()


def _split(
    a: torch.Tensor, b: torch.Tensor, size: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield columns of a with the rows of b that they meet."""
    yield from zip(a.split(size, -1), b.split(size, -2), strict=True)


def _add_aligned(terms: torch.Tensor, bits: int) -> torch.Tensor:
    """Add along the last dimension, which stays; all terms have the largest one's last bit."""
    exponent = torch.frexp(terms.abs().amax(-1, keepdim=True)).exponent
    unit = torch.exp2((exponent - 1 - bits).double())
    return (terms / unit).trunc_().mul_(unit).sum(-1, keepdim=True)


def _add_last(terms: torch.Tensor) -> torch.Tensor:
    """Add along the last dimension.

    A partial sum is a multiple of its unit in the last place, so to add a term is to round the term
    to the unit of the next one, if both are of one size. All steps are computed at once, from the
    exact partial sums.
    """
    terms = terms.float().double()
    partial = terms.cumsum(-1)
    exponent = torch.where(partial == 0, -125, torch.frexp(partial).exponent)
    unit = torch.exp2(exponent.clamp_(min=-125).double() - 24)
    return (terms / unit).round_().mul_(unit).sum(-1).float()


def _add_columns_times_rows(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b in float32: one product of a column and a row after the other."""
    total = a.new_zeros((*a.shape[:-1], b.shape[-1]))
    columns, rows = a.unsqueeze(-2).unbind(-1), b.unsqueeze(-2).unbind(-3)
    for column, row in zip(columns, rows, strict=True):
        total.addcmul_(column, row)
    return total
