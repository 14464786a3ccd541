"""Cases of values that are not combined with all else: each has a shape, or tensors, of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from operator import itemgetter

import torch

from triton_magics import operators
from triton_magics.harness.correctness.case_values import (
    are_alike,
    differ_in_rows,
    find_parts,
    has_bytes,
    is_transpose,
)
from triton_magics.harness.correctness.cases_beside import (
    FOUR_DIMENSIONS,
    MANY_DIMENSIONS,
    CasesBeside,
)
from triton_magics.harness.correctness.level_structures import weighs_by_exp
from triton_magics.harness.correctness.parameter_cases import parameter_cases
from triton_magics.harness.correctness.shape_classes import (
    MAX_FULL_COLUMNS,
    OVER_2_18,
    OVER_65_536,
    Shape,
)
from triton_magics.harness.correctness.shape_variants import (
    is_defined,
    keep_orders,
    shapes_of_several_blocks,
)
from triton_magics.harness.correctness.special_values import (
    BLOCK_OF_MINUS_INF,
    BLOCK_OF_TINY,
    BLOCK_OF_ZEROS,
    BLOCK_VALUES,
    COMPOSED_NONFINITE,
    COMPOSED_VALUES,
    FAR_ROWS,
    HALF_DTYPES,
    HEAD_SCALES,
    LATE_PEAKS,
    LEVELS,
    LEVELS_NONFINITE,
    LEVELS_OF_PRODUCTS,
    LONE_ELEMENT,
    MANY_ROW_VALUES,
    NAN_PARTS,
    ONE_TENSOR,
    ONE_WITH,
    ROW_SCALES,
    SHARED_VALUES,
    SINK,
    SMALL_VALUES,
    SOME_ROWS,
    STEADY_GROWTH,
    STEADY_RISE,
    TRANSPOSE,
    WEIGHTED_PAST,
    WINDOWS,
    ZEROS_IN,
    skips,
    special_of,
)
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import NORMAL, Case

# Rows, more than there are programs that take one row after the other.
MANY_ROWS, MANY_ROWS_INTERPRETED = 4_099, 201
MANY_HEADS, MANY_HEADS_INTERPRETED = (9, 32), (3, 47)  # more than 132, the programs on an H200
N_DRAWS = 4  # of an op's own values
N_PAST, LEAST_LIMIT = 8, 64  # rows that are longer than a number of the source, from 64 on
MAX_INTERPRETED_COLUMNS = 2**15
# Odd: a number of rows that is a multiple of 16 is another kernel for the compiler.
COMPOSED_ROWS, COMPOSED_ROWS_INTERPRETED = 65, 17
LONG = 8_209  # columns
FAR_LEVEL = 104.0  # exp(-104) is less than any number of float32
LONGER = 12_299  # other blocks of 4096 or fewer, the same power of two
LONG_ROW_VALUES = (
    LATE_PEAKS, LONE_ELEMENT, BLOCK_OF_MINUS_INF, BLOCK_OF_ZEROS, STEADY_RISE, WINDOWS,
)  # fmt: skip
SEVERAL_TILES = (129, 144)  # unaligned and aligned rows; a tile has up to 128
IN_TILES = (ONE_TENSOR, TRANSPOSE)  # in one tile too
FEW_ROWS, SUMMED_ROWS = 3, 9  # of long rows; a program may multiply the sums of eight rows


class ValueCases(CasesBeside):
    """Cases of values."""

    def with_values(self) -> list[Case]:
        """Return the cases of all of the values."""
        return [
            *self._with_small_values(),
            *self._with_shared_memory(),
            *self._with_zeros(),
            *self._with_weights(),
            *self._with_many_rows(),
            *self._with_many_heads(),
            *parameter_cases(self._op, self._dtypes, self.case),
            *self._with_structures_of_long_rows(),
            *self._with_composed_rows(),
            *self._with_own_values(),
            *self.at_levels([FAR_LEVEL]),
        ]

    def _with_own_values(self) -> list[Case]:
        """Return small cases of each dtype with each of the op's own values, and long, wide ones.

        Those are in the first dtype, which is the most precise one: several, each with its draw.
        """
        rank, dtypes = len(operators.smallest_shape(self._op)), list(self._dtypes)
        shapes = [s for s in self._op.shapes if len(s) == rank]
        ends = [max(shapes, key=itemgetter(dim)) for dim in range(-min(rank, 2), 0) if shapes]
        small = self._shapes.get("odd") or operators.smallest_shape(self._op)
        each = [(small, dtype) for dtype in dtypes]
        each += itertools.product(dict.fromkeys(ends), dtypes[:1] * N_DRAWS)
        return [
            self.case("", turn, special=values, dtype=dtype, shape=shape)
            for turn, (values, (shape, dtype)) in enumerate(
                itertools.product(self._op.values, each)
            )
        ]

    def _with_small_values(self) -> list[Case]:
        """Return a small case of each dtype with each of the values that need no other shape.

        A product has rows of many scales at its smallest size too.
        """
        own = [name for name in self._values if name in SMALL_VALUES]
        cases = [
            self.case("powers of two", turn, special=values, dtype=dtype)
            for turn, (values, dtype) in enumerate(itertools.product(own, self._dtypes))
            if self._has_values(values, dtype)
        ]
        size = operators.smallest_shape(self._op)
        is_product = self._op.op_class == "matmul" and len(size) < MANY_DIMENSIONS
        if is_product and ROW_SCALES in own and self._has_values(ROW_SCALES, self._dtypes[0]):
            # A product of large matrices may be one of their sums and differences.
            cases.append(self.case("", 0, special=ROW_SCALES, dtype=self._dtypes[0], shape=size))
        return cases

    def _with_shared_memory(self) -> list[Case]:
        """Return cases in which inputs are one tensor, its transpose or its parts."""
        cases = []
        several = [FOUR_DIMENSIONS] if self.has_any_number_of_dimensions() else []
        for turn, values in enumerate(SHARED_VALUES):
            dtypes = [d for d in self._dtypes if self._has_values(values, d)]
            if values not in self._values or not dtypes:
                continue
            dtype = dtypes[turn % len(dtypes)]
            plain = self.case("powers of two", turn, dtype=dtype)
            square = (*plain.shape[:-2], *[min(plain.shape[-2:])] * 2)
            shapes = [s for s in (plain.shape, square) if len(s) == len(plain.shape)] + several
            fitting = [s for s in shapes if self._can_share(plain.evolve(shape=s), values)]
            tiles = self._several_tiles(plain.shape, SEVERAL_TILES[turn % len(SEVERAL_TILES)])
            in_tiles = [s for s in tiles if self._can_share(plain.evolve(shape=s), values)]
            if values == SOME_ROWS:  # a tile of one input has no counterpart in the other
                cases += [plain.evolve(shape=s, special=values) for s in in_tiles]
            elif fitting:
                shape = (fitting if values in IN_TILES else in_tiles or fitting)[0]
                case = plain.evolve(shape=shape, special=values, regime=self._regime_of(values))
                cases += [case, *self._with_other_factors(case, turn)]
                cases += [case.evolve(shape=s) for s in in_tiles[:1] if values in IN_TILES]
        return cases

    def _regime_of(self, values: str) -> str:
        """Return a large scale for scores of a tensor with itself, in which one weighs most."""
        is_large = values in ONE_WITH and ONE_WITH[values][1] == "matmul"
        return "x10" if is_large and "x10" not in self._op.skip_values else NORMAL

    def _several_tiles(self, small: Shape, n: int) -> list[Shape]:
        """Return shapes of n rows, several tiles, in which inputs can be alike.

        Args:
            small: a shape whose heads they have, if the op has heads.
            n: rows.
        """
        if self._op.op_class == "reduction":  # its inputs that are alike are vectors
            return []
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        if len(base) >= MANY_DIMENSIONS:
            shapes: list[Shape] = [(*small[:-2], n, small[-1])]
        elif self._op.op_class == "matmul":
            shapes = [(n,) * len(base), (*base[:-2], n, base[-1]), (n, *base[1:])]
        else:  # a square one may be the transpose of another
            shapes = [(*base[:-2], n, 2 * n), (n,) * len(base)]
        return [s for s in shapes if len(s) == len(base) and is_defined(self._op, s)]

    def _with_other_factors(self, case: Case, turn: int) -> list[Case]:
        """Return the case with other values of its parameters that are no switches.

        Where inputs share memory, a kernel has a shorter way for some of them: one more, or every
        one where values are not finite, since infinity less a part of itself is NaN.
        """
        special = special_of(case.special)
        every = special is not None and not special.is_finite
        n = max((len(values) for values in self._scalars.values()), default=1) if every else 2
        several = [self.case("", turn + i).scalars for i in range(1, n)]
        own = [s for s in several if any(type(value) is float for _, value in s)]
        return [case.evolve(scalars=s) for s in dict.fromkeys(own) if s != case.scalars]

    def _with_weights(self) -> list[Case]:
        """Return cases of each dtype, in several blocks, whose weights need all blocks.

        One element or row weighs more than all others, which a kernel may leave out as too light.
        Of attention the others may be all of the output. Or all products are far below zero, where
        a maximum that begins at 0 is wrong.
        """
        shapes = shapes_of_several_blocks(self._op, is_interpreted=self._is_interpreted)
        has_heads = len(operators.smallest_shape(self._op)) >= MANY_DIMENSIONS
        of_heads = (SINK, WEIGHTED_PAST)
        own = [n for n in self._values if n in BLOCK_VALUES and (n not in of_heads or has_heads)]
        return [
            self.case("", turn, special=values, dtype=dtype, shape=shapes[turn % len(shapes)])
            for turn, (values, dtype) in enumerate(itertools.product(own, self._dtypes))
            if shapes and self._has_values(values, dtype)
        ]

    def _with_structures_of_long_rows(self) -> list[Case]:
        """Return cases of rows of several long blocks with the structures that blocks have.

        A block that is all -inf, or far below one element, is one of 4096 in a kernel for long
        rows. Over 10^5 elements that are e^11 times lighter than one weigh as much as that one.
        What a program stores of its block in 16 bits is lost far from zero. A longer row between
        two calls leaves another number of blocks in what a version counts. Where elements have
        weights, equal ones add up to most: a product of eight such sums is past float32.
        """
        if self._op.op_class != "reduction" or len(self._shapes.get("odd", ())) < 2:
            return []
        widest = OVER_65_536 if self._is_interpreted else OVER_2_18
        dtype = self._dtypes[self._seed % len(self._dtypes)]  # a kernel for each would be compiled
        half = next((d for d in HALF_DTYPES if d in self._dtypes), dtype)
        wide = "float32" if "float32" in self._dtypes else dtype  # it has most room to grow
        each = [(LONG, FAR_ROWS, half), (LONG, STEADY_GROWTH, wide)]
        each += [(LONGER, LATE_PEAKS, wide), (LONG, BLOCK_OF_TINY, wide)]  # and back
        each += [(LONG, values, dtype) for values in LONG_ROW_VALUES]
        each += [(widest, values, dtype) for values in (LONE_ELEMENT, STEADY_RISE)]
        rows = [(FEW_ROWS, *one) for one in each]
        rows += [(SUMMED_ROWS, widest, "zeros", wide)] if weighs_by_exp(self._op) else []
        first = self._shapes["odd"][:-2]
        return [
            self.case("", 0, special=values, dtype=own, shape=shape, extent=f"{columns:,} columns")
            for n_rows, columns, values, own in rows
            for shape in [(*first, n_rows, columns)]
            if values in self._values
            and self._has_values(values, own)
            and is_defined(self._op, shape)
        ]

    def _with_composed_rows(self) -> list[Case]:
        """Return cases with many rows composed at random: long ones of each dtype, longer ones.

        Factors of a product have the shapes of several blocks.
        """
        first = self._seed % len(self._dtypes)
        turned = itertools.cycle((*self._dtypes[first:], *self._dtypes[:first]))
        each: list[tuple[str, str, Shape]] = []
        for values in (name for name in self._values if name in COMPOSED_VALUES):
            in_all_dtypes = values != COMPOSED_NONFINITE and not self._is_interpreted
            for i, shape in enumerate(self._composed_shapes()):
                usual = (
                    "float32" if shape[-1] == LONG and "float32" in self._dtypes else next(turned)
                )
                own = self._dtypes if in_all_dtypes and i == 0 else [usual]
                each += [(values, dtype, shape) for dtype in own]
        return [
            self.case("", turn, special=values, dtype=dtype, shape=shape)
            for turn, (values, dtype, shape) in enumerate(each)
            if self._has_values(values, dtype)
        ]

    def structures_past(self, numbers: Sequence[int]) -> list[Case]:
        """Return cases of rows that are one longer than numbers of the source, with structures.

        A kernel treats rows over such a limit in parts. Just over it a last part differs most from
        the others, and usual rows have nearly equal parts. One of them may be all -inf.
        """
        base = self._shapes.get("odd", ())
        if len(base) < 2:
            return []
        most = MAX_INTERPRETED_COLUMNS if self._is_interpreted else MAX_FULL_COLUMNS
        possible = sorted({n + 1 for n in numbers if LEAST_LIMIT <= n < most}, reverse=True)
        shapes = [(*base[:-2], min(base[-2], N_PAST), columns) for columns in possible]
        usable = [s for s in shapes if is_defined(self._op, s)][: 2 if self._is_interpreted else 4]
        composed = [name for name in self._values if name in COMPOSED_VALUES][:1]
        dtypes = sorted(self._dtypes, key=lambda d: d != "float32")  # it allows the least errors
        each = [
            (values, dtype)
            for values in (*composed, *(name for name in self._values if name == WINDOWS))
            for dtype in [next((d for d in dtypes if self._has_values(values, d)), None)]
            if dtype
        ]
        return [
            self.case(
                "", turn, special=values, dtype=dtype, shape=shape, extent=f"{shape[-1]:,} columns"
            )
            for (values, dtype), (turn, shape) in itertools.product(each, enumerate(usable))
        ]

    def at_levels(self, distances: Sequence[float]) -> list[Case]:
        """Return cases of rows, or products, with levels so far apart, of ops of weights."""
        if not weighs_by_exp(self._op):
            return []
        dtypes = itertools.cycle(self._dtypes)
        if self._op.op_class == "matmul":
            shapes = shapes_of_several_blocks(self._op, is_interpreted=self._is_interpreted)
            each = [
                (f"{LEVELS_OF_PRODUCTS}{distance!r}", next(dtypes), shape)
                for distance, shape in itertools.product(distances, (shapes * 2)[:2])
            ]
        else:
            n = COMPOSED_ROWS_INTERPRETED if self._is_interpreted else COMPOSED_ROWS
            long = (*self._shapes.get("odd", ())[:-2], n, LONG)
            each = [(f"{LEVELS}{distance!r}", next(dtypes), long) for distance in distances]
            if FAR_LEVEL in distances:
                each += [(f"{LEVELS_NONFINITE}{FAR_LEVEL!r}", next(dtypes), long)]
        return [
            self.case("", turn, special=values, dtype=dtype, shape=shape)
            for turn, (values, dtype, shape) in enumerate(each)
            if self._has_values(values, dtype) and is_defined(self._op, shape)
        ]

    def _composed_shapes(self) -> list[Shape]:
        """Return shapes of many rows, or of several blocks of a product, the main one first."""
        if self._op.op_class == "matmul":
            return shapes_of_several_blocks(self._op, is_interpreted=self._is_interpreted)
        n = COMPOSED_ROWS_INTERPRETED if self._is_interpreted else COMPOSED_ROWS
        long, odd = self._shapes.get("long rows", ()), self._shapes.get("odd", ())
        shapes = (
            [long, (*long[:-1], LONG), odd] if self._op.op_class == "reduction" else [long, odd]
        )
        many = [keep_orders(self._op, (*s[:-2], n, s[-1])) for s in shapes if len(s) > 1]
        return [shape for shape in many if is_defined(self._op, shape)]

    def _has_values(self, values: str, dtype: str) -> bool:
        """Return whether special values mean something for the op in a dtype."""
        special = special_of(values)
        is_other = special is not None and special.dtypes and dtype not in special.dtypes
        return not is_other and not skips(self._op, values, dtype)

    def _with_zeros(self) -> list[Case]:
        """Return a case for each tensor in which it is 0 and the others are not finite.

        A kernel that leaves out what is multiplied by 0 loses the NaN there.
        """
        if not self._op.defined_for_nonfinite:
            return []
        inputs = self.inputs_of(self.case("powers of two", 0)).values()
        rank = max((x.dim() for x in inputs if is_floating(x)), default=0)
        whole = [
            i
            for i, x in enumerate(inputs)
            if (is_floating(x) or has_bytes(x)) and x.dim() == rank and i not in self._op.structured
        ]
        dtypes = itertools.cycle(self._dtypes)
        cases = [
            self.case("powers of two", turn, special=f"{ZEROS_IN}{i}", dtype=next(dtypes))
            for turn, i in enumerate(whole if len(whole) > 1 else ())
        ]
        return [case for case in cases if self._has_values(case.special, case.dtype)]

    def _with_many_rows(self) -> list[Case]:
        """Return cases with rows of every kind, more of them than programs.

        With few rows a program that takes several has little to carry from one to the next. A
        program of an elementwise op takes blocks, so its rows are long.
        """
        own = [name for name in self._values if name in MANY_ROW_VALUES]
        shape = self._many_rows()
        if not own or not shape:
            return []
        dtypes = itertools.cycle(self._dtypes)
        each = [(v, d) for v in own for d in self._dtypes_in(dtypes)]
        extent = f"{shape[-2]:,} rows"
        return [
            self.case("", turn, special=values, dtype=dtype, shape=shape, extent=extent)
            for turn, (values, dtype) in enumerate(each)
            if self._has_values(values, dtype)
        ]

    def _with_many_heads(self) -> list[Case]:
        """Return cases of more heads than programs, and of more rows.

        Of half of the heads the scores are far larger, or of half of the parts the values are NaN.
        What a program carries from one of them to the next shows there.
        """
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        first = MANY_HEADS_INTERPRETED if self._is_interpreted else MANY_HEADS
        has_heads = len(base) >= MANY_DIMENSIONS
        shape = (*first, *base[2:]) if has_heads else self._shape_of_parts()
        extent = f"{math.prod(first)} heads" if has_heads else ""
        if not shape or not is_defined(self._op, shape):
            return []
        own = [name for name in (HEAD_SCALES, NAN_PARTS) if name in self._values]
        first_dtype = self._seed % len(self._dtypes)
        turned = itertools.cycle((*self._dtypes[first_dtype:], *self._dtypes[:first_dtype]))
        return [
            self.case("", 0, special=values, dtype=dtype, shape=shape, extent=extent)
            for values, dtype in zip(own, turned, strict=False)
            if (has_heads or values != HEAD_SCALES) and self._has_values(values, dtype)
        ]

    def _shape_of_parts(self) -> Shape | None:
        """Return a shape of many rows, or of a product one of several blocks."""
        if self._op.op_class != "matmul":
            return self._many_rows()
        several = shapes_of_several_blocks(self._op, is_interpreted=self._is_interpreted)
        return several[0] if several else None

    def _dtypes_in(self, turn: Iterator[str]) -> Sequence[str]:
        """Return the dtypes of a costly case: all, in an interpreter the next one in turn."""
        return [next(turn)] if self._is_interpreted else self._dtypes

    def _many_rows(self) -> Shape | None:
        """Return a shape of many rows; of an elementwise op one of long rows, if it has one."""
        if self._op.op_class == "elementwise":
            return self._shapes.get("long rows")
        base = self._shapes.get("odd", ())
        if len(base) < 2:
            return None
        n = MANY_ROWS_INTERPRETED if self._is_interpreted else MANY_ROWS
        shape = keep_orders(self._op, (*base[:-2], n, base[-1]))
        return shape if shape[-2] == n and is_defined(self._op, shape) else None

    def _can_share(self, case: Case, values: str) -> bool:
        """Return whether the op takes this shape, and several of its inputs can share memory so."""
        special = special_of(values)
        if special is None or not is_defined(self._op, case.shape):
            return False
        inputs = [*self.inputs_of(case).values()]
        if special.transposes:
            later = inputs if special.alone is None else inputs[special.alone + 1 :]
            return any(is_transpose(y, x) for x, y in itertools.combinations(later, 2))
        if special.of_rows:
            return any(differ_in_rows(y, x) for x, y in itertools.combinations(inputs, 2))
        if special.splits and not find_parts(inputs, special):
            return False
        if special.repeats_first:
            inputs = [x for x in inputs if isinstance(x, torch.Tensor) and x.dim() >= 2]
        n_least = 2 if special.alone is None else 3
        return any(sum(are_alike(x, y) for y in inputs) >= n_least for x in inputs)
