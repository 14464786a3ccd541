"""Special values: structures in the values of a case's tensors, such as one NaN in each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from triton_magics import operators
from triton_magics.harness.correctness import product_structures as products
from triton_magics.harness.correctness import value_structures as structures
from triton_magics.harness.correctness.composed_rows import compose, compose_factor
from triton_magics.harness.correctness.level_structures import (
    levels_of_products,
    levels_of_rows,
    rows_about_one,
)

LATE_PEAKS, FEW_NUMBERS = "largest at the end", "few distinct numbers"
ROW_SCALES, ELEMENT_SCALES = "rows of many scales", "elements of many scales"
HEAD_SCALES = "heads of two scales"
WEIGHTED_PAST = "weighted sums past 65504"  # before they are divided by the sum of the weights
SINK = "attention sink, its value 0"  # the first key weighs most, and what is left is the output
NAN_PARTS = "NaN in some parts"  # of those that an op computes apart
ONE_TENSOR, TRANSPOSE = "one tensor for several inputs", "one tensor and its transpose"
PARTS, PARTS_APART = "parts of one tensor", "parts of one tensor, one unused"
PARTS_OF_MORE = "parts of one tensor, the last unused"
PARTS_REVERSED = "parts of one tensor, the last input first"
PROJECTION = "parts of one projection"  # [batch, position, part, head, head_dim], as models have it
PROJECTION_ALONE = "parts of one projection, but for the last input"
PARTS_OF_SLICE = "parts of a slice of one tensor"  # whole[:, :-1], of more rows in each batch
PROJECTION_OF_SLICE = "parts of a slice of one projection"
PROJECTION_OF_HEADS = "parts of some heads of one projection"
ONE_BUT_FIRST = "one tensor for several inputs, but for the first"
ONE_BUT_LAST = "one tensor for several inputs, but for the last"
PAST_SQUARE = "squares past the largest number"
# One tensor for several inputs, with values at which a shorter way may be wrong; the class of ops.
ONE_WITH = {
    f"{ONE_TENSOR}, {values}": (values, op_class)
    for values, op_class in (
        ("nonfinite", "elementwise"),
        (ROW_SCALES, "matmul"),
        (ELEMENT_SCALES, "elementwise"),
        (PAST_SQUARE, "elementwise"),
    )
}
BELOW_ZERO_PRODUCTS = "products far below zero"
HALF_BELOW_ZERO = "half of the products far below zero"
BELOW_FILL = "products below -10000"  # that kernels write for "minus infinity"
FIRST_BELOW_FILL = "first products below -10000"
LONE_ELEMENT, LONE_ROW = "one element as heavy as the others", "one row as heavy as the others"
BLOCK_OF_MINUS_INF, BLOCK_OF_ZEROS = "block of -inf", "block of zeros"
BLOCK_OF_TINY, WINDOWS = "block of tiny numbers", "parts between -inf"
MINUS_INF_ALONE = (BLOCK_OF_MINUS_INF, WINDOWS)  # no NaN beside it
TRANSPOSE_BUT_FIRST = "one tensor and its transpose, but for the first"
SOME_ROWS = "one tensor and some of its rows"
PARTS_IN_TURN = "parts of one tensor, their columns in turn"
PARTS_IN_TURN_REVERSED = "parts of one tensor, their columns in turn, the last input first"
ROW_STEPS = "rows of one tensor, those of each input in other steps"
FIRST_REPEATED = "one tensor and its first row or head, repeated"
FAR_ROWS = "rows at -20000"
STEADY_RISE, STEADY_GROWTH = "rows that rise steadily", "rows that grow steadily"
HALF_DTYPES = ("float16", "bfloat16")
BLOCK_VALUES = (  # for several blocks
    BELOW_ZERO_PRODUCTS, HALF_BELOW_ZERO, LONE_ELEMENT, LONE_ROW, BELOW_FILL, FIRST_BELOW_FILL,
    SINK, WEIGHTED_PAST,
)  # fmt: skip
SMALL_VALUES = (FEW_NUMBERS, ROW_SCALES, ELEMENT_SCALES, PAST_SQUARE)  # for a small shape
SHARED_VALUES = (
    ONE_TENSOR,
    TRANSPOSE,
    PARTS,
    PARTS_APART,
    PARTS_OF_MORE,
    PARTS_REVERSED,
    PROJECTION,
    PROJECTION_ALONE,
    PARTS_OF_SLICE,
    PROJECTION_OF_SLICE,
    PROJECTION_OF_HEADS,
    ONE_BUT_FIRST,
    ONE_BUT_LAST,
    TRANSPOSE_BUT_FIRST,
    SOME_ROWS,
    PARTS_IN_TURN,
    PARTS_IN_TURN_REVERSED,
    ROW_STEPS,
    FIRST_REPEATED,
    *ONE_WITH,
)  # for inputs that are alike
EVERY_KIND, EVERY_KIND_NONFINITE = "rows of every kind", "rows of every kind, nonfinite too"
MANY_ROW_VALUES = (EVERY_KIND, EVERY_KIND_NONFINITE)  # for many rows
COMPOSED, COMPOSED_NONFINITE = "composed rows", "composed rows, nonfinite too"
COMPOSED_FACTORS = "composed factors"
COMPOSED_VALUES = (COMPOSED, COMPOSED_NONFINITE, COMPOSED_FACTORS)
NOT_COMBINED = (
    *SMALL_VALUES, *SHARED_VALUES, *BLOCK_VALUES, *MANY_ROW_VALUES, BLOCK_OF_ZEROS,
    STEADY_RISE, STEADY_GROWTH, BLOCK_OF_TINY, WINDOWS, HEAD_SCALES, NAN_PARTS, *COMPOSED_VALUES,
)  # with all else  # fmt: skip
NEAR = "values near "  # a number of the source: `values near 88.5`
PAST = "values past "  # all of them: `values past -4.0` are below it
NAN_BESIDE_PAST = "NaN beside values past "
LEVELS = "parts at levels "  # apart by a number of the source: `parts at levels 88.0`
LEVELS_NONFINITE = "parts at levels and -inf "
LEVELS_OF_PRODUCTS = "products at levels "
ZEROS_IN = "nonfinite beside zeros in input "  # `nonfinite beside zeros in input 0`


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
        of_rows: two inputs that differ in their rows are one, and the first rows of it; one of them
            may be transposed.
        repeats_first: the last of several inputs that are alike is the first row of the one before
            it, or its first head, repeated.
        splits: inputs of one shape, or of its transpose, lie side by side in one tensor.
        spare: place of a part among these that is no input, from the end; None: there is none.
        is_reversed: the parts are in the opposite order of the inputs.
        is_projection: the parts of a position lie side by side, each with all heads.
        in_turn: the columns of the parts take turns.
        has_row_steps: the parts are rows of the tensor that begin with the first: every second and
            every one.
        is_sliced: the tensor has another row after those of the parts, in each batch.
        has_spare_head: the projection has another head after those of the parts.
        of_largest: only inputs with as many dimensions as the largest are joined.
        alone: place among three or more inputs that are alike of one that shares no memory.
        places: the inputs to put it into, each with its own structure; empty: see `everywhere`.
        of_parts: it is put into parts along the dimensions of the op's INDEPENDENT.
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
    of_rows: bool = False
    repeats_first: bool = False
    splits: bool = False
    spare: int | None = None
    is_reversed: bool = False
    is_projection: bool = False
    in_turn: bool = False
    has_row_steps: bool = False
    is_sliced: bool = False
    has_spare_head: bool = False
    of_largest: bool = False
    alone: int | None = None
    places: Mapping[int, Structure] = field(default_factory=dict)
    of_parts: bool = False
    others: Structure | None = None
    parts: tuple[str, ...] = ()
    extreme_of: str = ""
    min_columns: int = 1
    min_rows: int = 1

    @property
    def is_view(self) -> bool:
        """Return whether an input is a view of another one's memory."""
        return self.transposes or self.of_rows or self.repeats_first

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether a tensor of this shape can have the structure."""
        columns = shape[-1] if shape else 1
        rows = torch.Size(shape[:-1]).numel()
        return columns >= self.min_columns and rows >= self.min_rows


def special_of(name: str) -> Special | None:
    """Return special values by their name; None for plain ones."""
    if name.startswith(NEAR):
        return Special(partial(structures.near, float(name.removeprefix(NEAR))), everywhere=True)
    if name.startswith(PAST):
        number = float(name.removeprefix(PAST))
        return Special(partial(structures.past, number), everywhere=True, has_scale=True)
    if name.startswith(NAN_BESIDE_PAST):
        number = float(name.removeprefix(NAN_BESIDE_PAST))
        apply = partial(structures.nan_beside_past, number)
        return Special(
            apply, is_finite=False, everywhere=True, has_scale=True, parts=("nonfinite",)
        )
    if name.startswith(LEVELS_NONFINITE):
        number = float(name.removeprefix(LEVELS_NONFINITE))
        apply = partial(levels_of_rows, number, is_finite=False)
        parts = ("shifted", BLOCK_OF_MINUS_INF)
        return Special(apply, is_finite=False, has_scale=True, parts=parts)
    if name.startswith(LEVELS):
        number = float(name.removeprefix(LEVELS))
        apply = partial(levels_of_rows, number, is_finite=True)
        return Special(apply, has_scale=True, parts=("shifted",))
    if name.startswith(LEVELS_OF_PRODUCTS):
        number = float(name.removeprefix(LEVELS_OF_PRODUCTS))
        places: dict[int, Structure]
        places = {0: rows_about_one, 1: partial(levels_of_products, number)}
        return Special(rows_about_one, has_scale=True, places=places, parts=("shifted",))
    if name.startswith(ZEROS_IN):
        place = int(name.removeprefix(ZEROS_IN))
        return Special(
            structures.zeros,
            is_finite=False,
            has_scale=True,
            places={place: structures.zeros},
            others=structures.nonfinite,
            parts=("zeros", "nonfinite"),
        )
    return SPECIALS.get(name)


def skips(op: operators.Op, values: str, dtype: str) -> bool:
    """Return whether special values, or a part of them, are meaningless for an op in a dtype."""
    special = special_of(values)
    parts = special.parts if special else ()
    return any(operators.skips(op, name, dtype) for name in (values, *parts))


NO_SPECIAL = Special(lambda x, draw: x, has_ends=True)
_FINITE_PARTS = ("zeros", "equal", "rows unlike their neighbours", ROW_SCALES)
_COMPOSED_PARTS = (*_FINITE_PARTS, "x10", "shifted", "negative")


def _far_from_zero(second: Callable[..., torch.Tensor], size: float) -> Special:
    """Return factors whose products are far from zero: the first above it, the second as given."""
    first = partial(products.above, size)
    places = {0: first, 1: partial(second, size)}
    return Special(first, places=places, op_classes=("matmul",), parts=("shifted",))


SPECIALS = {
    "equal": Special(structures.all_equal, everywhere=True),
    "zeros": Special(structures.zeros, everywhere=True, has_scale=True),
    "huge element": Special(structures.huge_element, has_ends=True),
    "sums past 65504": Special(
        structures.past_half_in_sums,
        has_scale=True,
        min_columns=2,
        op_classes=("elementwise", "reduction"),
    ),
    "products past 65504": Special(
        structures.past_half_in_products,
        everywhere=True,
        has_scale=True,
        min_columns=2,
        op_classes=("matmul",),
    ),
    "exp past 65504": Special(
        structures.past_half_in_exp,
        everywhere=True,
        has_scale=True,
        op_classes=("elementwise",),
        dtypes=HALF_DTYPES,
    ),
    "near the largest number": Special(
        structures.near_the_largest,
        everywhere=True,
        has_scale=True,
        extreme_of="large",
        op_classes=("elementwise",),
        dtypes=("float16",),  # float32 has no room for what a right kernel computes with them
    ),
    "far from the mean": Special(
        structures.far_from_the_mean,
        has_scale=True,
        extreme_of="large",
        min_columns=4,
        op_classes=("reduction",),
        dtypes=("float16",),
    ),
    "exact cancellation": Special(structures.cancelling, min_columns=2),
    "rows unlike their neighbours": Special(structures.odd_rows, min_rows=2, has_ends=True),
    LATE_PEAKS: Special(
        structures.late_peaks, everywhere=True, min_columns=2, op_classes=("reduction", "matmul")
    ),
    FEW_NUMBERS: Special(structures.few_numbers, everywhere=True),
    ROW_SCALES: Special(
        structures.row_scales, everywhere=True, min_rows=2, op_classes=("reduction", "matmul")
    ),
    NAN_PARTS: Special(lambda x, draw: x, is_finite=False, of_parts=True),
    HEAD_SCALES: Special(
        products.head_scales,
        places={0: products.head_scales},
        op_classes=("matmul",),
        parts=("x10",),
    ),
    SINK: Special(
        products.sink_query,
        places={0: products.sink_query, 1: products.sink_key, 2: products.sink_value},
        op_classes=("matmul",),
    ),
    WEIGHTED_PAST: Special(
        structures.alike,
        places={1: structures.alike, 2: partial(products.above, products.PAST_IN_FEW)},
        op_classes=("matmul",),
        dtypes=("float16",),
    ),
    ELEMENT_SCALES: Special(structures.element_scales, op_classes=("elementwise",)),
    ONE_TENSOR: Special(lambda x, draw: x, everywhere=True, joins=True),
    TRANSPOSE: Special(lambda x, draw: x, everywhere=True, transposes=True),
    SOME_ROWS: Special(lambda x, draw: x, everywhere=True, of_rows=True),
    FIRST_REPEATED: Special(lambda x, draw: x, everywhere=True, repeats_first=True),
    PARTS: Special(lambda x, draw: x, everywhere=True, splits=True),
    PARTS_APART: Special(lambda x, draw: x, everywhere=True, splits=True, spare=-2),
    PARTS_OF_MORE: Special(lambda x, draw: x, everywhere=True, splits=True, spare=-1),
    PARTS_REVERSED: Special(lambda x, draw: x, everywhere=True, splits=True, is_reversed=True),
    TRANSPOSE_BUT_FIRST: Special(lambda x, draw: x, everywhere=True, transposes=True, alone=0),
    PARTS_IN_TURN: Special(lambda x, draw: x, everywhere=True, splits=True, in_turn=True),
    PARTS_IN_TURN_REVERSED: Special(
        lambda x, draw: x, everywhere=True, splits=True, in_turn=True, is_reversed=True
    ),
    ROW_STEPS: Special(lambda x, draw: x, everywhere=True, splits=True, has_row_steps=True),
    PROJECTION: Special(lambda x, draw: x, everywhere=True, splits=True, is_projection=True),
    PROJECTION_ALONE: Special(
        lambda x, draw: x, everywhere=True, splits=True, is_projection=True, alone=-1
    ),
    PARTS_OF_SLICE: Special(lambda x, draw: x, everywhere=True, splits=True, is_sliced=True),
    PROJECTION_OF_SLICE: Special(
        lambda x, draw: x, everywhere=True, splits=True, is_projection=True, is_sliced=True
    ),
    PROJECTION_OF_HEADS: Special(
        lambda x, draw: x, everywhere=True, splits=True, is_projection=True, has_spare_head=True
    ),
    ONE_BUT_FIRST: Special(lambda x, draw: x, everywhere=True, joins=True, alone=0),
    ONE_BUT_LAST: Special(lambda x, draw: x, everywhere=True, joins=True, alone=-1),
    PAST_SQUARE: Special(
        structures.past_the_largest_square,
        everywhere=True,
        has_scale=True,
        extreme_of="large",
        op_classes=("elementwise",),
        dtypes=("float32", "bfloat16"),
    ),
    STEADY_RISE: Special(
        structures.steady_rise, has_scale=True, min_columns=4, op_classes=("reduction",)
    ),
    STEADY_GROWTH: Special(
        structures.steady_growth,
        has_scale=True,
        min_columns=4,
        op_classes=("reduction",),
    ),
    LONE_ELEMENT: Special(structures.lone_element, min_columns=2, op_classes=("reduction",)),
    LONE_ROW: Special(
        structures.lone_row,
        places={0: structures.alike, 1: structures.lone_row},
        min_rows=2,
        op_classes=("matmul",),
    ),
    BELOW_ZERO_PRODUCTS: _far_from_zero(products.below, products.FAR),
    HALF_BELOW_ZERO: _far_from_zero(products.later_below, products.FAR),
    BELOW_FILL: _far_from_zero(products.below, products.PAST_FILL),
    FIRST_BELOW_FILL: _far_from_zero(products.first_below, products.PAST_FILL),
    EVERY_KIND: Special(
        partial(structures.every_kind, is_finite=True),
        everywhere=True,
        op_classes=("elementwise", "reduction"),
        parts=_FINITE_PARTS,
    ),
    EVERY_KIND_NONFINITE: Special(
        partial(structures.every_kind, is_finite=False),
        is_finite=False,
        everywhere=True,
        op_classes=("elementwise", "reduction"),
        parts=(*_FINITE_PARTS, "nonfinite", BLOCK_OF_MINUS_INF),
    ),
    COMPOSED: Special(
        partial(compose, is_finite=True),
        everywhere=True,
        has_scale=True,
        op_classes=("elementwise", "reduction"),
        parts=_COMPOSED_PARTS,
    ),
    COMPOSED_FACTORS: Special(
        compose_factor,
        everywhere=True,
        has_scale=True,
        op_classes=("matmul",),
        parts=(*_FINITE_PARTS, "x10", "shifted"),
    ),
    COMPOSED_NONFINITE: Special(
        partial(compose, is_finite=False),
        is_finite=False,
        everywhere=True,
        has_scale=True,
        op_classes=("elementwise", "reduction"),
        parts=(*_COMPOSED_PARTS, "nonfinite", BLOCK_OF_MINUS_INF),
    ),
    "least and largest bytes": Special(structures.byte_extremes, everywhere=True, of_bytes=True),
    FAR_ROWS: Special(structures.far_rows, has_ends=True),
    "nonfinite": Special(structures.nonfinite, is_finite=False, everywhere=True),
    BLOCK_OF_ZEROS: Special(
        structures.block_of_zeros, min_columns=4, op_classes=("reduction",), parts=("zeros",)
    ),
    BLOCK_OF_TINY: Special(structures.tiny_block, min_columns=4, op_classes=("reduction",)),
    WINDOWS: Special(
        structures.windows,
        is_finite=False,
        min_columns=8,
        op_classes=("reduction",),
        parts=(BLOCK_OF_MINUS_INF,),
    ),
    BLOCK_OF_MINUS_INF: Special(structures.block, is_finite=False, min_columns=4),
}
SPECIALS |= {
    name: replace(
        SPECIALS[values],
        everywhere=True,
        joins=True,
        of_largest=True,
        parts=(values,),
        op_classes=(op_class,),
    )
    for name, (values, op_class) in ONE_WITH.items()
}
