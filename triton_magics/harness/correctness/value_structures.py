"""Structures of values: each takes a tensor and a generator, and returns the tensor with it."""

from __future__ import annotations

import math

import torch

HALF_MAX = 65_504.0  # the largest float16
_FAR_BELOW = -2e4  # below the -1e4 that kernels write for "minus infinity"
_HUGE = 3e4
_NONFINITE = (math.nan, math.inf, -math.nan, -math.inf)
_MIXED = (*_NONFINITE, 0.0, -0.0)
_NEAR_START = 8  # in the first such part of a row
_ROW_OFFSET = -200.0  # exp(-200) is 0 in float32
_GROWTH = 2  # powers of two, of the values over a row, and of the last one over the others
_SCALES, _FAR_SCALES = (-10.0, 4.0), (-40.0, 40.0)  # powers of two
_HEAD_DIMENSIONS = 4
_N_STEPS = 2  # from 0 to the largest of few distinct numbers
_FINITE_KINDS = 7  # of a row
_RISE = 120.0  # exp(120) is past float32
_GROWN = {torch.float16: (-14.0, 4.0)}  # powers of two; sums of such rows stay in range
_GROWN_WIDE = (-20.0, 20.0)
_TINY = 2.0**-70  # of a block beside others: float32 has it, but not its square
_JITTER = 0.05  # of rows that are alike
# Logarithm of a weight over that of all others together, which still count: they are 2 % of it, and
# in float32 1 part in 1,000.
_ABOVE, _ABOVE_FLOAT32 = 4.0, 7.0


def all_equal(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return the first element everywhere."""
    return x.flatten()[0].expand(x.shape).contiguous()


def zeros(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return zeros."""
    return torch.zeros_like(x)


def _rows(x: torch.Tensor) -> torch.Tensor:
    """Return a copy as a matrix of rows."""
    return x.clone().reshape(-1, x.shape[-1])


def _deal(
    rows: torch.Tensor, n_roles: int, draw: torch.Generator, *, n_idle: int = 0
) -> list[slice]:
    """Return the rows of each role: they take turns, from a random one on, with some idle rows.

    Rows that are too few for that have a role each, unless `n_idle` rows in a turn must be idle.
    """
    step = n_roles + (n_idle or 1)
    n_starts = n_roles if len(rows) < step and not n_idle else step
    first = int(torch.randint(n_starts, (), generator=draw, device=rows.device))
    return [slice((first + i) % n_starts, None, step) for i in range(n_roles)]


def nonfinite(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Put one NaN of either sign, or one infinity, into most rows, each at each place in turn.

    A NaN hides an infinity in the same row. Further rows mix all of these, zeros and numbers, so
    that each meets each of another tensor.
    """
    rows = _rows(x)
    number = torch.arange(len(rows), device=x.device)
    is_mixed = number % 5 == draw.initial_seed() % 5  # the same rows of each tensor
    mixed, others = number[is_mixed], number[~is_mixed]
    _put_alone(rows, others, draw)
    values = _values_of(_MIXED, x)
    kind = torch.randint(len(_MIXED) + 1, rows[mixed].shape, device=x.device, generator=draw)
    rows[mixed] = torch.where(
        kind < len(_MIXED), values[kind.clamp(max=len(_MIXED) - 1)], rows[mixed]
    )
    return rows.reshape(x.shape)


def _put_alone(rows: torch.Tensor, chosen: torch.Tensor, draw: torch.Generator) -> None:
    """Write one nonfinite value into each chosen row; of many rows every 17th is left as it is.

    Any four rows in a row have all values, and all places: the first and last lane, the first lane
    of an aligned block, and a random one.
    """
    n, n_roles = rows.shape[-1], len(_NONFINITE) * len(_NONFINITE)
    turn = torch.arange(len(chosen), device=rows.device)
    first = torch.randint(n_roles, (), generator=draw, device=rows.device)
    turn = (turn + first) % (n_roles + (len(chosen) > n_roles))
    anywhere = torch.randint(n, turn.shape, generator=draw, device=rows.device)
    places = [torch.full_like(turn, lane) for lane in (0, n - 1, _half_block(n) % n)]
    lane = torch.stack((*places, anywhere)).gather(0, ((turn + turn // 4) % 4)[None])[0]
    values = _values_of(_NONFINITE, rows)[turn % len(_NONFINITE)]
    rows[chosen, lane] = torch.where(turn < n_roles, values, rows[chosen, lane])


def _values_of(values: tuple[float, ...], like: torch.Tensor) -> torch.Tensor:
    """Return values in the dtype of a tensor; a conversion may lose the sign of a NaN."""
    signs = [math.copysign(1.0, v) for v in values]
    own, sign = (torch.tensor(v, dtype=like.dtype, device=like.device) for v in (values, signs))
    return own.copysign(sign)


def _half_block(n: int) -> int:
    """Return the largest power of two that is at most half a row."""
    return 1 << max((n // 2).bit_length() - 1, 0)


def block_of_zeros(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return the blocks of `block`, of zeros."""
    return torch.where(block(x, draw).isinf(), 0.0, x)


def block(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Fill an aligned block of some rows: the first or second one, half a row long, or all."""
    rows = _rows(x)
    length = _half_block(x.shape[-1])
    first, second, masked = _deal(rows, 3, draw)
    rows[first, :length] = float("-inf")
    rows[second, length : 2 * length] = float("-inf")
    rows[masked] = float("-inf")
    return rows.reshape(x.shape)


def tiny_block(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return the blocks of `block`, of tiny numbers: they are a jump away from the others."""
    return torch.where(block(x, draw).isinf(), x * _TINY, x)


def windows(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Leave only a late part of some rows finite, and take a hole and the end out of others."""
    rows, n = _rows(x), x.shape[-1]
    late, holed = _deal(rows, 2, draw)
    rows[late, : 5 * n // 8] = float("-inf")
    rows[:, 7 * n // 8 :] = float("-inf")
    rows[holed, n // 4 : n // 2] = float("-inf")
    return rows.reshape(x.shape)


def far_rows(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Move every second row far below zero."""
    rows = _rows(x)
    rows[0::2] = rows[0::2] + _FAR_BELOW
    return rows.reshape(x.shape)


def huge_element(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Make a random element huge."""
    flat = x.clone().flatten()
    flat[torch.randint(flat.numel(), (1,), device=x.device, generator=draw)] = _HUGE
    return flat.reshape(x.shape)


def past_half_in_sums(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows of which half adds up to twice 65,504, the other half to the opposite."""
    n = x.shape[-1]
    return _two_halves(x, draw, min(4 * HALF_MAX / n, 0.45 * HALF_MAX))


def past_half_in_products(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows whose squares add up to a little more than 65,504."""
    return _two_halves(x, draw, (1.25 * HALF_MAX / x.shape[-1]) ** 0.5)


def past_half_in_exp(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return values of about one size whose exp(-x) is a little more than 65,504.

    A result that is lost there is small, so no element may be larger than the others by far: the
    allowed error has the scale of the whole output.
    """
    jitter = torch.rand(x.shape, device=x.device, generator=draw)
    return (-math.log(HALF_MAX) - 0.1 - jitter).to(x.dtype)


def near_the_largest(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return numbers of both signs, 0.55 to 0.95 of the largest: the double of each is infinite."""
    size = torch.rand(x.shape, device=x.device, generator=draw, dtype=torch.float64) * 0.4 + 0.55
    sign = torch.rand(x.shape, device=x.device, generator=draw) < 0.5
    return (torch.where(sign, size, -size) * torch.finfo(x.dtype).max).to(x.dtype)


def far_from_the_mean(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows near the least number of the dtype, with one in eight near the largest.

    The distance of these to the mean, and that of two elements, is past the largest number.
    """
    rows = _rows(x)
    size = 0.85 + 0.1 * torch.rand(rows.shape, device=x.device, generator=draw)
    first = torch.randint(8, (len(rows), 1), device=x.device, generator=draw)
    first = first.clamp(max=rows.shape[-1] - 1)
    is_large = (torch.arange(rows.shape[-1], device=x.device) - first) % 8 == 0
    values = torch.where(is_large, size, -size) * torch.finfo(x.dtype).max
    return values.to(x.dtype).reshape(x.shape)


def byte_extremes(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Set a quarter of the elements to the least number of the dtype, a quarter to the largest."""
    kind = torch.randint(4, x.shape, device=x.device, generator=draw)
    limits = torch.iinfo(x.dtype)
    return x.masked_fill(kind == 0, limits.min).masked_fill(kind == 1, limits.max)


def _two_halves(x: torch.Tensor, draw: torch.Generator, size: float) -> torch.Tensor:
    """Return values of about one size: the first half of a row positive, the second negative."""
    n = x.shape[-1]
    sign = torch.where(torch.arange(n, device=x.device) < (n + 1) // 2, 1.0, -1.0)
    jitter = torch.rand(x.shape, device=x.device, generator=draw) * 0.02 + 0.99
    return (jitter * sign * size).to(x.dtype)


def cancelling(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows whose second half is the first one negated, backwards: they add up to 0."""
    rows, half = _rows(x), x.shape[-1] // 2
    rows[:, half:] = 0
    rows[:, x.shape[-1] - half :] = -rows[:, :half].flip(-1)
    return rows.reshape(x.shape)


def late_peaks(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Let the values grow fourfold along a row and over the rows, the last ones by 16.

    A running maximum or sum then meets its largest terms last, also in a block that is masked. The
    largest are 16 times what they were: with 512 times, products were past what half types hold.
    """
    grown = x.double()
    for dim, n in enumerate(x.shape[::-1][:2]):
        powers = torch.linspace(-_GROWTH, 0, n, device=x.device)
        powers[-1] = _GROWTH
        grown = grown * powers.exp2().reshape(n, *[1] * dim)
    limit = torch.finfo(x.dtype).max
    return grown.clamp(-limit, limit).to(x.dtype)


def odd_rows(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Make every second row unlike its neighbours, as a block of rows has them together.

    Half of these are far below the others; a quarter each are 0, or have equal elements.
    """
    rows = _rows(x)
    rows[1::4] = rows[1::4] + _ROW_OFFSET
    rows[3::8] = 0
    rows[7::8] = rows[7::8, :1]
    return rows.reshape(x.shape)


def every_kind(x: torch.Tensor, draw: torch.Generator, *, is_finite: bool) -> torch.Tensor:
    """Draw a kind for each row, so that any kind comes after any other one, at any distance.

    The kinds: as it was (twice), 200 below, 200 above, 0, equal elements, rescaled. Rows that are
    not finite are of any of these, with an element of NaN, infinity or -infinity, or are all
    -infinity. A row is computed from itself alone; what a program keeps from one row to the next
    shows.
    """
    rows = _rows(x)
    kind = torch.randint(_FINITE_KINDS, (len(rows), 1), device=x.device, generator=draw)
    forms = (
        rows + _ROW_OFFSET,
        rows - _ROW_OFFSET,
        torch.zeros_like(rows),
        rows[:, :1].expand(rows.shape),
        _rescale(rows, (len(rows), 1), draw),
    )
    own = rows
    for i, form in enumerate(forms, 2):
        own = torch.where(kind == i, form, own)
    if is_finite:
        return own.reshape(x.shape)
    lane = torch.randint(rows.shape[-1], kind.shape, device=x.device, generator=draw)
    is_lane = torch.arange(rows.shape[-1], device=x.device) == lane
    turn = torch.randint(2 * len(_NONFINITE), kind.shape, device=x.device, generator=draw)
    for i, value in enumerate(_NONFINITE):
        own = own.masked_fill(is_lane & (turn == i), value)
    return own.masked_fill(turn == len(_NONFINITE), -math.inf).reshape(x.shape)


def lone_element(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows of small numbers and one that has the weight of all others in a softmax.

    In the first row it is near the start, and no heavier: what is left out behind it shows most.
    """
    rows = _rows(x)
    lane = torch.randint(rows.shape[-1], (len(rows), 1), device=x.device, generator=draw)
    above = torch.rand(lane.shape, device=x.device, generator=draw) * 2 * _ABOVE
    lane[:1] //= _NEAR_START
    above[:1] = 0.0
    above += math.log(rows.shape[-1])
    return (rows * 0.01).scatter(1, lane, above.to(x.dtype)).reshape(x.shape)


def steady_rise(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows that rise in equal steps, and every second one that falls so.

    No block lies far above the one before it, and the last one lies far above the first.
    """
    rows = _rows(x)
    slope = torch.linspace(0, _RISE, rows.shape[-1], device=x.device, dtype=torch.float64)
    values = slope.repeat(len(rows), 1)
    values[1::2] = slope.flip(0)
    return (values + rows * _JITTER).to(x.dtype).reshape(x.shape)


def steady_growth(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows that grow from tiny to large by one factor; every second one shrinks so."""
    rows = _rows(x)
    ends = _GROWN.get(x.dtype, _GROWN_WIDE)
    powers = torch.linspace(*ends, rows.shape[-1], device=x.device, dtype=torch.float64)
    values = powers.exp2().repeat(len(rows), 1)
    values[1::2] = values[1::2].flip(-1)
    values *= 1 + _JITTER * rows.double().clamp(-4, 4)
    return values.to(x.dtype).reshape(x.shape)


def past_the_largest_square(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return numbers of both signs whose squares are past float32, 2^64.5 to 2^66."""
    power = 64.5 + 1.5 * torch.rand(x.shape, device=x.device, generator=draw, dtype=torch.float64)
    sign = torch.rand(x.shape, device=x.device, generator=draw) < 0.5
    return torch.where(sign, power.exp2(), -power.exp2()).to(x.dtype)


def alike(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return numbers about 1, so that rows are alike."""
    return 1 + x * _JITTER


def lone_row(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return matrices of zeros but for one row near either end.

    In a softmax of products with rows that are alike it has many times the weight of all others.
    Scores of attention are divided by the root of the columns, logits of a loss are not.
    """
    n, columns = x.shape[-2:]
    rows = x.reshape(-1, n, columns)
    ends = torch.tensor([*range((n + 3) // 4), *range(n - (n + 3) // 4, n)], device=x.device)
    chosen = torch.randint(len(ends), (len(rows), 1, 1), device=x.device, generator=draw)
    is_lone = torch.arange(n, device=x.device)[None, :, None] == ends[chosen]
    above = _ABOVE_FLOAT32 if x.dtype == torch.float32 else _ABOVE
    size = columns**0.5 if x.dim() >= _HEAD_DIMENSIONS else columns
    lone = (rows * _JITTER + math.log(n) + above) / size
    return torch.where(is_lone, lone, 0.0).to(x.dtype).reshape(x.shape)


def row_scales(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Multiply each row by a power of two of its own, 2^-40 to 2^40.

    What has one scale for all of a matrix in fewer bits loses the lightest rows, and a sum in
    fixed point the heaviest. Of float16, and of heads, where a right kernel may take the mean of
    all keys off, it is 2^-10 to 2^4.
    """
    is_near = x.dtype is torch.float16 or x.dim() >= _HEAD_DIMENSIONS
    scales = _SCALES if is_near else _FAR_SCALES
    return _rescale(x, (*x.shape[:-1], 1), draw, scales)


def element_scales(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Multiply each element by a power of two of its own, 2^-10 to 2^4."""
    return _rescale(x, tuple(x.shape), draw)


def _rescale(
    x: torch.Tensor,
    shape: tuple[int, ...],
    draw: torch.Generator,
    scales: tuple[float, float] = _SCALES,
) -> torch.Tensor:
    least, largest = scales
    power = torch.rand(shape, device=x.device, generator=draw) * (largest - least) + least
    return (x.double() * power.round().double().exp2()).to(x.dtype)


def few_numbers(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Round to a typical size, its double, and 0 of either sign: most rows repeat their maximum."""
    wide = x.double()
    size = wide.square().mean().sqrt().clamp(min=torch.finfo(x.dtype).smallest_normal)
    return ((wide / size).round().clamp(-_N_STEPS, _N_STEPS) * size).to(x.dtype)


def near(number: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return values of either sign from half a number to its double; one in eight is the number.

    Of every second row all are, of the others one.
    """
    rows = _rows(x)
    factor = torch.rand(rows.shape, device=x.device, generator=draw) * 2 - 1
    kind = torch.randint(16, rows.shape, device=x.device, generator=draw)
    factor = torch.where(kind < 2, 0.0, factor).exp2()
    near = (torch.where(kind % 2 == 0, factor, -factor).double() * number).to(x.dtype)
    lane = torch.randint(rows.shape[-1], (len(rows), 1), device=x.device, generator=draw)
    is_chosen = torch.arange(rows.shape[-1], device=x.device) == lane
    is_chosen[::2] = True
    return torch.where(is_chosen, near, rows).reshape(x.shape)


def past(number: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return values of the number's sign, each from a little more than it to its double.

    A kernel that takes a short way where all elements of a tile are so far takes it everywhere.
    """
    factor = 1.02 + 0.98 * torch.rand(x.shape, device=x.device, generator=draw)
    return (factor.double() * number).to(x.dtype)


def nan_beside_past(number: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return the values of `past`, with a NaN in every second row: a maximum may pass it by."""
    rows = past(number, x, draw).reshape(-1, x.shape[-1])
    lane = torch.randint(rows.shape[-1], (len(rows), 1), device=x.device, generator=draw)
    is_chosen = torch.arange(rows.shape[-1], device=x.device) == lane
    is_chosen[1::2] = False
    return rows.masked_fill(is_chosen, math.nan).reshape(x.shape)


def raise_ends(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Make the first element of some rows the largest by far, and the last one of others.

    A kernel that loses an end of a row is then wrong by more than a share of 1 / columns.
    """
    rows = _rows(x)
    first, last = _deal(rows, 2, draw, n_idle=2)
    top = rows.amax(-1)
    peak = (2 * top - rows.amin(-1)).clamp(max=torch.finfo(x.dtype).max)
    rows[first, 0] = peak[first]
    rows[last, -1] = peak[last]
    return rows.reshape(x.shape)
