"""Rows composed at random: sizes along a row, signs, a middle, an order, a stretch that differs.

The structures of `value_structures` are those that somebody has thought of. A composed row has a
part of each kind at random, so that pairs and triples of them meet, other ones with each seed.
"""

from __future__ import annotations

import math

import torch

_POWERS = 12.0  # the sizes along a row differ by up to 2^12
LARGEST = (1.0, 8.0, 120.0)  # element of a row; exp(120) is past float32
LARGEST_FACTORS = (1.0, 8.0)
_HALF_SUM = 3e4  # of the sizes in a row of float16, so that all sums are finite
_TINY = 2.0**-70  # float32 has it, but not its square


class _Rows:
    """Random choices for each row of a matrix."""

    def __init__(self, rows: torch.Tensor, draw: torch.Generator) -> None:
        self._n_rows, self._n = rows.shape
        self._draw, self._device = draw, rows.device
        self.lanes = torch.arange(self._n, device=rows.device)[None]
        self.along = torch.linspace(0, 1, self._n, device=rows.device, dtype=torch.float64)[None]

    def number(self, least: float, most: float) -> torch.Tensor:
        """Return a number for each row, [rows, 1]."""
        share = torch.rand((self._n_rows, 1), device=self._device, generator=self._draw)
        return least + (most - least) * share.double()

    def whole(self, n: int) -> torch.Tensor:
        """Return an integer below n for each row, [rows, 1]."""
        return torch.randint(n, (self._n_rows, 1), device=self._device, generator=self._draw)

    def one_of(self, *forms: torch.Tensor) -> torch.Tensor:
        """Return for each row one of the forms, which broadcast to [rows, columns]."""
        kind = self.whole(len(forms))
        chosen = forms[0]
        for i, form in enumerate(forms[1:], 1):
            chosen = torch.where(kind == i, form, chosen)
        return chosen

    def stretch(self) -> torch.Tensor:
        """Return which elements lie in a stretch of each row, [rows, columns].

        It is a power of two long, one element, or any length; it begins at a multiple of that, at
        the start, anywhere, or ends at the end.
        """
        power = 1 << self.whole(max(self._n.bit_length() - 1, 1))
        length = self.one_of(power, torch.ones_like(power), 1 + self.whole(self._n))
        last = self._n - length
        somewhere = (self.number(0, 1) * (last + 1)).long()
        start = self.one_of(somewhere // length * length, 0 * last, somewhere, last)
        return (self.lanes >= start) & (self.lanes < start + length)

    def waves(self) -> torch.Tensor:
        """Return 0 and 1 in turn, each for a power of two of elements."""
        width = 1 << self.whole(max(self._n.bit_length() - 1, 1))
        return self.lanes // width % 2


def compose_factor(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return a factor of a product whose rows or columns are composed; sums stay finite."""
    is_turned = bool(torch.randint(2, (), device=x.device, generator=draw))
    own = x.mT if is_turned and x.dim() > 1 else x
    half_sum = _HALF_SUM / LARGEST_FACTORS[-1]
    composed = compose(own, draw, largest=LARGEST_FACTORS, half_sum=half_sum, is_finite=True)
    return composed.mT.contiguous() if own is not x else composed


def compose(
    x: torch.Tensor,
    draw: torch.Generator,
    *,
    largest: tuple[float, ...] = LARGEST,
    half_sum: float = _HALF_SUM,
    is_finite: bool,
) -> torch.Tensor:
    """Return a tensor whose rows are composed, each at random.

    Args:
        x: random numbers of any shape, [..., columns].
        draw: for the choices.
        largest: sizes of a row's largest element, of which each row has one.
        half_sum: the most that the sizes in a row of float16 add up to.
        is_finite: else half of the rows have NaN or infinity in a stretch or an element.
    """
    own = x.reshape(-1, x.shape[-1]).double()
    rows = _Rows(own, draw)
    power = rows.number(-_POWERS, _POWERS)
    steady = torch.zeros_like(power)
    sizes = rows.one_of(
        steady, power * rows.along, power * rows.along.flip(1), power * rows.stretch(),
        power * rows.waves(),
    )  # fmt: skip
    values = own * sizes.exp2()
    size = values.abs()
    turns = torch.where(rows.lanes % 2 == 0, size, -size)
    values = rows.one_of(values, size, -size, turns, torch.where(rows.stretch(), -size, size))
    middle = rows.number(-8, 8) * sizes.exp2().amax(1, keepdim=True)
    values = values + rows.one_of(steady, steady, middle, middle * rows.along)
    values = rows.one_of(values, values, values.sort(1).values, values.sort(1, True).values)
    values = _rescale(values, rows, largest, half_sum if x.dtype is torch.float16 else math.inf)
    differs = torch.where(rows.stretch(), rows.one_of(*_finite_forms(values)), values)
    if not is_finite:
        differs = rows.one_of(differs, _with_nonfinite(differs, rows))
    return differs.to(x.dtype).reshape(x.shape)


def _finite_forms(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return what a stretch may have in place of its values."""
    return values, values, 0 * values, values * _TINY, values[:, :1], -values


def _with_nonfinite(values: torch.Tensor, rows: _Rows) -> torch.Tensor:
    """Return rows with NaN or infinity in one element or two, or -infinity outside a stretch."""
    lone, other = (rows.lanes == rows.whole(values.shape[1]) for _ in range(2))
    stretch, inf = rows.stretch(), torch.inf
    with_inf = values.masked_fill(lone, inf)
    return rows.one_of(
        values.masked_fill(lone, torch.nan),
        with_inf,
        with_inf.masked_fill(other, -inf),
        with_inf.masked_fill(other, torch.nan),
        values.masked_fill(lone, -inf),
        values.masked_fill(stretch, -inf),
        values.masked_fill(~stretch, -inf),
    )


def _rescale(
    values: torch.Tensor, rows: _Rows, largest: tuple[float, ...], most: float
) -> torch.Tensor:
    """Return the rows with a largest size chosen for each, so that sizes add up to this at most."""
    size = values.abs().amax(1, keepdim=True).clamp_min(_TINY)
    chosen = rows.one_of(*(torch.full_like(size, each) for each in largest))
    sums = values.abs().sum(1, keepdim=True).clamp_min(_TINY)
    return values / size * torch.minimum(chosen, most * size / sums)
