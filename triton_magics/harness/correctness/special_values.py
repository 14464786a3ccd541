"""Special values: structures in the values of a case's tensors, such as one NaN in each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch

from triton_magics import operators

HALF_MAX = 65_504.0  # the largest float16
_FAR_BELOW = -2e4  # below the -1e4 that kernels write for "minus infinity"
_HUGE = 3e4
_NONFINITE = (math.nan, math.inf, -math.nan, -math.inf)
_MIXED = (*_NONFINITE, 0.0, -0.0)
_ROW_OFFSET = -200.0  # exp(-200) is 0 in float32
LATE_PEAKS, FEW_NUMBERS = "largest at the end", "few distinct numbers"
ROW_SCALES, ELEMENT_SCALES = "rows of many scales", "elements of many scales"
ONE_TENSOR, TRANSPOSE = "one tensor for several inputs", "one tensor and its transpose"
PARTS, PARTS_APART = "parts of one tensor", "parts of one tensor, one unused"
PARTS_OF_MORE = "parts of one tensor, the last unused"
PARTS_REVERSED = "parts of one tensor, the last input first"
PROJECTION = "parts of one projection"  # [batch, position, part, head, head_dim], as models have it
PROJECTION_ALONE = "parts of one projection, but for the last input"
ONE_BUT_FIRST = "one tensor for several inputs, but for the first"
ONE_BUT_LAST = "one tensor for several inputs, but for the last"
BELOW_ZERO_PRODUCTS = "products far below zero"
HALF_BELOW_ZERO = "half of the products far below zero"
LONE_ELEMENT, LONE_ROW = "one element as heavy as the others", "one row as heavy as the others"
BLOCK_VALUES = (BELOW_ZERO_PRODUCTS, HALF_BELOW_ZERO, LONE_ELEMENT, LONE_ROW)  # for several blocks
SMALL_VALUES = (FEW_NUMBERS, ROW_SCALES, ELEMENT_SCALES)  # for a small shape
SHARED_VALUES = (
    ONE_TENSOR,
    TRANSPOSE,
    PARTS,
    PARTS_APART,
    PARTS_OF_MORE,
    PARTS_REVERSED,
    PROJECTION,
    PROJECTION_ALONE,
    ONE_BUT_FIRST,
    ONE_BUT_LAST,
)  # for inputs that are alike
EVERY_KIND, EVERY_KIND_NONFINITE = "rows of every kind", "rows of every kind, nonfinite too"
MANY_ROW_VALUES = (EVERY_KIND, EVERY_KIND_NONFINITE)  # for many rows
NOT_COMBINED = (*SMALL_VALUES, *SHARED_VALUES, *BLOCK_VALUES, *MANY_ROW_VALUES)  # with all else
NEAR = "values near "  # a number of the source: `values near 88.5`
PAST = "values past "  # all of them: `values past -4.0` are below it
ZEROS_IN = "nonfinite beside zeros in input "  # `nonfinite beside zeros in input 0`
_GROWTH = 2  # powers of two, of the values over a row, and of the last one over the others
_SCALES = (-10.0, 4.0)  # powers of two
_N_STEPS = 2  # from 0 to the largest of few distinct numbers
_FINITE_KINDS = 7  # of a row
_FAR = 8.0  # from zero: a product of eight numbers is 500 and more
_JITTER = 0.05  # of rows that are alike
# Logarithm of a weight over that of all others together, which still count: they are 2 % of it, and
# in float32 1 part in 1,000.
_ABOVE, _ABOVE_FLOAT32 = 4.0, 7.0


Structure = Callable[[torch.Tensor, torch.Generator], torch.Tensor]


@dataclass(frozen=True)
class Special:
    """A structure in the values of a tensor.

    Attributes:
        apply: (x, generator) -> x with the structure.
        is_finite: it writes neither NaN nor infinity.
        has_ends: the largest elements of some rows may stand at the ends of these rows.
        everywhere: it is put into every tensor, not into one.
        has_scale: it sets the values itself, so that the regime changes nothing.
        op_classes: classes of ops for which it means something.
        dtypes: for which it means something; empty for all.
        of_bytes: it is put into tensors of 8-bit integers.
        joins: inputs of one shape and dtype are one tensor.
        transposes: an input that has the shape of an earlier one's transpose is that.
        splits: inputs of one shape, or of its transpose, lie side by side in one tensor.
        spare: place of a part among these that is no input, from the end; None: there is none.
        is_reversed: the parts are in the opposite order of the inputs.
        is_projection: the parts of a position lie side by side, each with all heads.
        alone: place among three or more inputs that are alike of one that shares no memory.
        places: the inputs to put it into, each with its own structure; empty: see `everywhere`.
        others: the structure of the other inputs with as many dimensions; None: as they are.
        parts: other special values that it contains: an op that skips one of them skips it too.
        extreme_of: a regime that it goes beyond: an op that skips that one skips it too, and so
            does one whose reference in torch overflows at it.
        min_columns: of the tensor's last dimension, for the structure to be there.
        min_rows: of all other dimensions together.
    """

    apply: Structure
    is_finite: bool = True
    has_ends: bool = False
    everywhere: bool = False
    has_scale: bool = False
    op_classes: tuple[str, ...] = operators.OP_CLASSES
    dtypes: tuple[str, ...] = ()
    of_bytes: bool = False
    joins: bool = False
    transposes: bool = False
    splits: bool = False
    spare: int | None = None
    is_reversed: bool = False
    is_projection: bool = False
    alone: int | None = None
    places: Mapping[int, Structure] = field(default_factory=dict)
    others: Structure | None = None
    parts: tuple[str, ...] = ()
    extreme_of: str = ""
    min_columns: int = 1
    min_rows: int = 1

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether a tensor of this shape can have the structure."""
        columns = shape[-1] if shape else 1
        rows = torch.Size(shape[:-1]).numel()
        return columns >= self.min_columns and rows >= self.min_rows


def special_of(name: str) -> Special | None:
    """Return special values by their name; None for plain ones."""
    if name.startswith(NEAR):
        return Special(partial(_near, float(name.removeprefix(NEAR))), everywhere=True)
    if name.startswith(PAST):
        number = float(name.removeprefix(PAST))
        return Special(partial(_past, number), everywhere=True, has_scale=True)
    if name.startswith(ZEROS_IN):
        place = int(name.removeprefix(ZEROS_IN))
        return Special(
            _zeros, is_finite=False, has_scale=True, places={place: _zeros}, others=_nonfinite,
            parts=("zeros", "nonfinite"),
        )  # fmt: skip
    return SPECIALS.get(name)


def skips(op: operators.Op, values: str, dtype: str) -> bool:
    """Return whether special values, or a part of them, are meaningless for an op in a dtype."""
    special = special_of(values)
    parts = special.parts if special else ()
    return any(operators.skips(op, name, dtype) for name in (values, *parts))


def _all_equal(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    return x.flatten()[0].expand(x.shape).contiguous()


def _zeros(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
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


def _nonfinite(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
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


def _block(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Fill an aligned block of some rows: the first or second one, half a row long, or all."""
    rows = _rows(x)
    length = _half_block(x.shape[-1])
    first, second, masked = _deal(rows, 3, draw)
    rows[first, :length] = float("-inf")
    rows[second, length : 2 * length] = float("-inf")
    rows[masked] = float("-inf")
    return rows.reshape(x.shape)


def _far_rows(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    rows = _rows(x)
    rows[0::2] = rows[0::2] + _FAR_BELOW
    return rows.reshape(x.shape)


def _huge_element(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    flat = x.clone().flatten()
    flat[torch.randint(flat.numel(), (1,), device=x.device, generator=draw)] = _HUGE
    return flat.reshape(x.shape)


def _past_half_in_sums(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows of which half adds up to twice 65,504, the other half to the opposite."""
    n = x.shape[-1]
    return _two_halves(x, draw, min(4 * HALF_MAX / n, 0.45 * HALF_MAX))


def _past_half_in_products(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows whose squares add up to a little more than 65,504."""
    return _two_halves(x, draw, (1.25 * HALF_MAX / x.shape[-1]) ** 0.5)


def _past_half_in_exp(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return values of about one size whose exp(-x) is a little more than 65,504.

    A result that is lost there is small, so no element may be larger than the others by far: the
    allowed error has the scale of the whole output.
    """
    jitter = torch.rand(x.shape, device=x.device, generator=draw)
    return (-math.log(HALF_MAX) - 0.1 - jitter).to(x.dtype)


def _near_the_largest(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return numbers of both signs, 0.55 to 0.95 of the largest: the double of each is infinite."""
    size = torch.rand(x.shape, device=x.device, generator=draw, dtype=torch.float64) * 0.4 + 0.55
    sign = torch.rand(x.shape, device=x.device, generator=draw) < 0.5
    return (torch.where(sign, size, -size) * torch.finfo(x.dtype).max).to(x.dtype)


def _far_from_the_mean(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
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


def _byte_extremes(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
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


def _cancelling(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows whose second half is the first one negated, backwards: they add up to 0."""
    rows, half = _rows(x), x.shape[-1] // 2
    rows[:, half:] = 0
    rows[:, x.shape[-1] - half :] = -rows[:, :half].flip(-1)
    return rows.reshape(x.shape)


def _late_peaks(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
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


def _odd_rows(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Make every second row unlike its neighbours, as a block of rows has them together.

    Half of these are far below the others; a quarter each are 0, or have equal elements.
    """
    rows = _rows(x)
    rows[1::4] = rows[1::4] + _ROW_OFFSET
    rows[3::8] = 0
    rows[7::8] = rows[7::8, :1]
    return rows.reshape(x.shape)


def _every_kind(x: torch.Tensor, draw: torch.Generator, *, is_finite: bool) -> torch.Tensor:
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
        _row_scales(rows, draw),
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


def _above_zero(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    return x.abs() + _FAR


def _below_zero(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    return -x.abs() - _FAR


def _half_below_zero(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return numbers far above zero in the first half of the rows of each matrix, else far below.

    Whole blocks then weigh nothing beside those before them, and may be needed all the same: as the
    logits of targets.
    """
    is_later = torch.arange(x.shape[-2], device=x.device)[:, None] >= x.shape[-2] // 2
    return torch.where(is_later, _below_zero(x, draw), _above_zero(x, draw))


def _lone_element(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows of small numbers and one that has the weight of all others in a softmax."""
    rows = _rows(x)
    lane = torch.randint(rows.shape[-1], (len(rows), 1), device=x.device, generator=draw)
    above = torch.rand(lane.shape, device=x.device, generator=draw) * 2 * _ABOVE
    above += math.log(rows.shape[-1])
    return (rows * 0.01).scatter(1, lane, above.to(x.dtype)).reshape(x.shape)


def _alike(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    return 1 + x * _JITTER


def _lone_row(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return matrices of zeros but for one row near either end.

    In a softmax of products with rows that are alike it has many times the weight of all others.
    """
    n, columns = x.shape[-2:]
    rows = x.reshape(-1, n, columns)
    ends = torch.tensor([*range((n + 3) // 4), *range(n - (n + 3) // 4, n)], device=x.device)
    chosen = torch.randint(len(ends), (len(rows), 1, 1), device=x.device, generator=draw)
    is_lone = torch.arange(n, device=x.device)[None, :, None] == ends[chosen]
    above = _ABOVE_FLOAT32 if x.dtype == torch.float32 else _ABOVE
    lone = (rows * _JITTER + math.log(n) + above) / columns**0.5
    return torch.where(is_lone, lone, 0.0).to(x.dtype).reshape(x.shape)


def _row_scales(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Multiply each row by a power of two of its own, 2^-10 to 2^4."""
    return _rescale(x, (*x.shape[:-1], 1), draw)


def _element_scales(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Multiply each element by a power of two of its own, 2^-10 to 2^4."""
    return _rescale(x, tuple(x.shape), draw)


def _rescale(x: torch.Tensor, shape: tuple[int, ...], draw: torch.Generator) -> torch.Tensor:
    least, largest = _SCALES
    power = torch.rand(shape, device=x.device, generator=draw) * (largest - least) + least
    return (x.double() * power.round().double().exp2()).to(x.dtype)


def _few_numbers(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Round to a typical size, its double, and 0 of either sign: most rows repeat their maximum."""
    wide = x.double()
    size = wide.square().mean().sqrt().clamp(min=torch.finfo(x.dtype).smallest_normal)
    return ((wide / size).round().clamp(-_N_STEPS, _N_STEPS) * size).to(x.dtype)


def _near(number: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
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


def _past(number: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return values of the number's sign, each from a little more than it to its double.

    A kernel that takes a short way where all elements of a tile are so far takes it everywhere.
    """
    factor = 1.02 + 0.98 * torch.rand(x.shape, device=x.device, generator=draw)
    return (factor.double() * number).to(x.dtype)


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


NO_SPECIAL = Special(lambda x, draw: x, has_ends=True)
_FINITE_PARTS = ("zeros", "equal", "rows unlike their neighbours", ROW_SCALES)
SPECIALS = {
    "equal": Special(_all_equal, everywhere=True),
    "zeros": Special(_zeros, everywhere=True, has_scale=True),
    "huge element": Special(_huge_element, has_ends=True),
    "sums past 65504": Special(
        _past_half_in_sums, has_scale=True, min_columns=2, op_classes=("elementwise", "reduction")
    ),
    "products past 65504": Special(
        _past_half_in_products,
        everywhere=True,
        has_scale=True,
        min_columns=2,
        op_classes=("matmul",),
    ),
    "exp past 65504": Special(
        _past_half_in_exp,
        everywhere=True,
        has_scale=True,
        op_classes=("elementwise",),
        dtypes=("float16", "bfloat16"),
    ),
    "near the largest number": Special(
        _near_the_largest,
        everywhere=True,
        has_scale=True,
        extreme_of="large",
        op_classes=("elementwise",),
        dtypes=("float16",),  # float32 has no room for what a right kernel computes with them
    ),
    "far from the mean": Special(
        _far_from_the_mean,
        has_scale=True,
        extreme_of="large",
        min_columns=4,
        op_classes=("reduction",),
        dtypes=("float16",),
    ),
    "exact cancellation": Special(_cancelling, min_columns=2),
    "rows unlike their neighbours": Special(_odd_rows, min_rows=2, has_ends=True),
    LATE_PEAKS: Special(
        _late_peaks, everywhere=True, min_columns=2, op_classes=("reduction", "matmul")
    ),
    FEW_NUMBERS: Special(_few_numbers, everywhere=True),
    ROW_SCALES: Special(_row_scales, min_rows=2, op_classes=("reduction", "matmul")),
    ELEMENT_SCALES: Special(_element_scales, op_classes=("elementwise",)),
    ONE_TENSOR: Special(lambda x, draw: x, everywhere=True, joins=True),
    TRANSPOSE: Special(lambda x, draw: x, everywhere=True, transposes=True),
    PARTS: Special(lambda x, draw: x, everywhere=True, splits=True),
    PARTS_APART: Special(lambda x, draw: x, everywhere=True, splits=True, spare=-2),
    PARTS_OF_MORE: Special(lambda x, draw: x, everywhere=True, splits=True, spare=-1),
    PARTS_REVERSED: Special(lambda x, draw: x, everywhere=True, splits=True, is_reversed=True),
    PROJECTION: Special(lambda x, draw: x, everywhere=True, splits=True, is_projection=True),
    PROJECTION_ALONE: Special(
        lambda x, draw: x, everywhere=True, splits=True, is_projection=True, alone=-1
    ),
    ONE_BUT_FIRST: Special(lambda x, draw: x, everywhere=True, joins=True, alone=0),
    ONE_BUT_LAST: Special(lambda x, draw: x, everywhere=True, joins=True, alone=-1),
    LONE_ELEMENT: Special(_lone_element, min_columns=2, op_classes=("reduction",)),
    LONE_ROW: Special(
        _lone_row, places={0: _alike, 1: _lone_row}, min_rows=2, op_classes=("matmul",)
    ),
    BELOW_ZERO_PRODUCTS: Special(
        _above_zero,
        places={0: _above_zero, 1: _below_zero},
        op_classes=("matmul",),
        parts=("shifted",),
    ),
    HALF_BELOW_ZERO: Special(
        _above_zero,
        places={0: _above_zero, 1: _half_below_zero},
        min_rows=2,
        op_classes=("matmul",),
        parts=("shifted",),
    ),
    EVERY_KIND: Special(
        partial(_every_kind, is_finite=True),
        everywhere=True,
        op_classes=("elementwise", "reduction"),
        parts=_FINITE_PARTS,
    ),
    EVERY_KIND_NONFINITE: Special(
        partial(_every_kind, is_finite=False),
        is_finite=False,
        everywhere=True,
        op_classes=("elementwise", "reduction"),
        parts=(*_FINITE_PARTS, "nonfinite", "block of -inf"),
    ),
    "least and largest bytes": Special(_byte_extremes, everywhere=True, of_bytes=True),
    "rows at -20000": Special(_far_rows, has_ends=True),
    "nonfinite": Special(_nonfinite, is_finite=False, everywhere=True),
    "block of -inf": Special(_block, is_finite=False, min_columns=4),
}
