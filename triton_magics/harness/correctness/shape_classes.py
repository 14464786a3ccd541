"""Classes of awkward shapes, and extents: shapes at which an index or a limit overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping

from triton_magics import operators

Shape = tuple[int, ...]

TINY_ELEMENTS = 8
LONG_ROW = 1025  # columns; kernels often take 1024 at once
MANY_ROWS = 1000
SEVERAL_ROWS = 17  # of long rows: a program may take some of them, one after the other
SMALL_DIM = 64  # a leading dimension above it is cut down where many cases have the shape
POWERS_OF_TWO = "powers of two"
ONLY_THOROUGH = "only in the thorough plan"
MAX_INTERPRETED = 530_000  # elements of an extent; 3x70001 takes a looping kernel 0.2 s
MAX_TILES = 36  # of a product of whole blocks
MAX_FULL = 2**21  # elements of an extent of the full plan
PRODUCT_RANK, _TILE, _BLOCK = 3, 64, 1024
_LENGTHS = (48, 96, 192, 384)  # odd multiples of 16, 32, 64 and 128
_COLUMNS = (272, 288, 320, 384)  # those for which one kernel with a row in a block is compiled
_ROWS = (96, 24, 48, 12)  # beside them; the elements are whole blocks of 256 to 1024
MAX_FULL_COLUMNS = 2**16  # a kernel with a whole row in a block compiles for 19 s above it


OVER_65_536, OVER_2_18 = 70_001, 280_009  # columns
OVER_8_TILES = "over 8 tiles of positions"
_ROW_EXTENTS = {
    "over 65,535 rows": (70_001, 3),
    "over 65,536 columns": (2, OVER_65_536),
    "151,936 columns": (1, 151_936),
    "over 2^18 columns": (1, OVER_2_18),  # a block of 2^18 is too small
    "over 1,000,000 columns": (1, 1_000_003),
    "over 2^24 rows": (2**24 + 3, 2),  # more than float32 can count
    "over 2^31 elements": (2**15 + 1, 2**16),
}
_HEADS_AND_ROWS = (129, 130_057)  # over 2^24 rows together
# In the interpreter, of elementwise ops: 2 s of a program a row, 516 programs of 1024 elements.
STAND_INS = {"over 2,048 rows": (2_053, 257)}
# On a GPU, of elementwise ops: over 1,024 programs of 1024 elements too.
_MANY_ELEMENTS = {"over 65,535 rows": (70_001, 15)}
_LINE_EXTENTS = {"over 2^19 elements": (525_013,), "over 2^31 elements": (2**31 + 3,)}
# In the interpreter, of products: each dimension that a GPU has much larger, by itself.
_PRODUCT_STAND_INS: dict[int, dict[str, Shape]] = {
    3: {"over 2,048 rows": (2_053, 1, 3)},
    4: {"over 128 batches": (129, 1, 2, 16), "over 128 heads": (1, 129, 2, 16)},
}
_PRODUCT_EXTENTS: dict[int, dict[str, Shape]] = {
    3: {  # m, n, k
        "over 65,535 rows": (70_001, 1, 3),
        # Tiles of 64 go in groups of 8, in another order; the last group is not whole.
        "over 8 tiles of rows": (577, 129, 5),
        "over 8 tiles of columns": (129, 577, 5),
        # With several rows, so that a target of a loss is past the limit.
        "over 65,535 columns": (13, 151_937, 1),  # well past 2^17, which many parts hold
        "over 32,767 columns": (13, 40_009, 1),  # cheap enough for the interpreter
        "reduction over 8,192": (3, 5, 8_209),
        "reduction over 16,384": (5, 7, 20_011),
        "reduction over 65,536": (5, 7, 100_003),
        "over 2^24 rows": (2**24 + 3, 1, 3),
        "over 2^31 elements": (2**16 + 1, 2**15 + 1, 8),
    },
    4: {  # batch, heads, seq, head_dim
        # Several blocks of positions, as wide heads have smaller ones.
        "head_dim over 128": (1, 2, 97, 160),
        "head_dim 256": (1, 1, 97, 256),
        "over 65,535 heads": (257, 256, 1, 16),
        OVER_8_TILES: (1, 2, 545, 16),  # nine of 64: in three of four splits, the last is empty
        "long sequence": (1, 1, 16_385, 16),
    },
}


def classify(shape: Shape, rank: int) -> str:
    """Return the class of a shape of an op whose sizes have this rank."""
    columns, rows = shape[-1], math.prod(shape[:-1])
    rules = (
        ("tiny", math.prod(shape) <= TINY_ELEMENTS),
        ("another rank", len(shape) != rank),
        ("one column", columns == 1),
        ("long rows", columns >= LONG_ROW),
        ("one row", rows == 1),
        ("many rows", rows >= MANY_ROWS),
        (POWERS_OF_TWO, all(n & (n - 1) == 0 for n in shape)),
    )
    return next((name for name, holds in rules if holds), "odd")


def representatives(op: operators.Op) -> dict[str, Shape]:
    """Return a cheap shape of each class that the op's shapes have, and one of powers of two.

    These shapes carry most cases, so leading dimensions are small: a program takes the interpreter
    a millisecond. Long rows are several, for what a program carries from one to the next. An op
    without shapes is computed at its sizes only, so it has its smallest one.
    """
    smallest = operators.smallest_shape(op)
    rank = len(smallest)
    if not op.shapes:
        return {classify(smallest, rank): smallest}
    # A product whose rows can't be computed apart is a loss over them: its columns are reduced too.
    reduces_columns = op.op_class == "matmul" and not op.independent
    chosen: dict[str, Shape] = {}
    for shape in op.shapes:
        small = shape if reduces_columns and shape[-1] < LONG_ROW else cut_shape(shape)
        name = classify(shape, rank)
        best = chosen.setdefault(name, small)
        if shape_cost(small) < shape_cost(best):
            chosen[name] = small
    long = chosen.get("long rows", ())
    declared = [s[-2] for s in op.shapes if len(s) == len(long) > 1]
    if op.op_class != "matmul" and max(declared, default=0) >= SEVERAL_ROWS:
        chosen["long rows"] = (*long[:-2], max(long[-2], SEVERAL_ROWS), long[-1])
    powers = _powers_of_two(smallest)
    if powers and POWERS_OF_TWO not in chosen:
        chosen[POWERS_OF_TWO] = powers
    return chosen


def shape_cost(shape: Shape) -> tuple[bool, int]:
    """Return the order in which shapes are preferred: not trivial, then few elements."""
    return math.prod(shape) < 32, math.prod(shape)


def cut_shape(shape: Shape) -> Shape:
    """Return the shape with smaller leading dimensions: multiples of 16 stay so, odd stays odd."""
    return (*(n if n <= SMALL_DIM else 32 + n % 2 for n in shape[:-1]), shape[-1])


def _powers_of_two(size: Shape) -> Shape | None:
    """Return a shape with two and more of everything: the stride of a single row is never used."""
    if any(n & (n - 1) for n in size):
        return None
    return (*(min(max(n, 2), 16) for n in size[:-1]), min(size[-1], 32))


def whole_blocks(op: operators.Op) -> list[Shape]:
    """Return shapes whose lengths are odd multiples of one power of two each, from 16 to 128.

    They are whole blocks of one size and not of the next: a mask that the wrong block leaves out
    shows there. Of a product with more dimensions than matrices have, the last but one has them.
    """
    powers = representatives(op).get(POWERS_OF_TWO)
    if powers is None:
        return []
    n, rank = len(_LENGTHS), len(powers)
    if rank == 1:
        return [(length,) for length in _COLUMNS]
    like = min((s for s in op.shapes if len(s) == rank), key=shape_cost, default=powers)
    if op.op_class != "matmul":
        return [(*like[:-2], *ends) for ends in zip(_ROWS, _COLUMNS, strict=True)]
    if rank == PRODUCT_RANK:
        shapes = [tuple(_LENGTHS[(i + dim) % n] for dim in range(rank)) for i in range(n)]
    else:
        shapes = [(*like[:-2], length, powers[-1]) for length in _LENGTHS]
    return [shape for shape in shapes if interpreter_cost(op, shape) <= MAX_TILES]


def extents(op: operators.Op, *, is_interpreted: bool = False) -> Mapping[str, Shape]:
    """Return the op's extents by name: those that it declares, or those of its class and rank.

    An op without shapes is computed at its sizes only, so it has none. For the interpreter there
    are stand-ins of many rows or heads, for which most kernels take few programs.
    """
    if op.extents is not None or not op.shapes:
        return op.extents or {}
    rank = len(operators.smallest_shape(op))
    if op.op_class == "matmul":
        stand_ins = _PRODUCT_STAND_INS.get(rank, {}) if is_interpreted else {}
        return _PRODUCT_EXTENTS.get(rank, {}) | stand_ins
    if rank == 1:
        return _LINE_EXTENTS
    own = STAND_INS if is_interpreted else _MANY_ELEMENTS
    rows = _ROW_EXTENTS | (own if op.op_class == "elementwise" else {})
    every = {name: (*(1,) * (rank - 2), *shape) for name, shape in rows.items()}
    if rank > 2:
        every["over 2^24 rows"] = (*(1,) * (rank - 3), *_HEADS_AND_ROWS, 2)
    return every


def has_many_programs(op: operators.Op, shape: Shape) -> bool:
    """Return whether a program for each row, or each tile or pair of tiles of a product, are many.

    A version may have fewer: only its own launch tells.
    """
    if op.op_class != "matmul":
        return math.prod(shape[:-1]) > MANY_ROWS
    if len(shape) == PRODUCT_RANK:
        return math.prod(math.ceil(n / _TILE) for n in shape[:-1]) > MANY_ROWS
    return interpreter_cost(op, shape) > MANY_ROWS


def interpreter_cost(op: operators.Op, shape: Shape) -> int:
    """Return about how many blocks a usual kernel computes; an interpreter does one at a time."""
    *rows, columns = shape
    if op.op_class != "matmul":
        return math.prod(rows) * math.ceil(columns / _BLOCK)
    tiles = [math.ceil(n / _TILE) for n in shape]
    if len(shape) == PRODUCT_RANK:
        return math.prod(tiles)
    return math.prod(rows[:-1]) * tiles[-2] ** 2 * tiles[-1]  # every query meets every key


def left_out_extents(op: operators.Op, plan: str, *, is_interpreted: bool) -> dict[str, str]:
    """Return the extents that a plan does not have, by name, with the reasons.

    Of those with more columns than a block should have, a full plan on a GPU has the widest that is
    cheap: it lies beyond every limit that the others lie beyond.
    """
    own = extents(op, is_interpreted=is_interpreted)
    cheap = [shape for shape in own.values() if math.prod(shape) <= MAX_INTERPRETED]
    widest = max((shape[-1] for shape in cheap), default=0)
    left_out = {}
    for name, shape in own.items():
        n, columns = math.prod(shape), shape[-1]
        if is_interpreted:
            many = op.op_class == "matmul" and has_many_programs(op, shape)
            if n > MAX_INTERPRETED or many:
                left_out[name] = "too large for the interpreter"
        elif plan != "thorough" and (
            n > MAX_FULL or (columns > MAX_FULL_COLUMNS and columns != widest)
        ):
            left_out[name] = ONLY_THOROUGH
    return left_out
