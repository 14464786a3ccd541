"""Cases of layouts that are not combined with all else, and of how far elements lie apart."""

from __future__ import annotations

import itertools
import math
import random

import torch

from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.case_inputs import make_meta
from triton_magics.harness.correctness.cases_beside import (
    FOUR_DIMENSIONS,
    MANY_DIMENSIONS,
    CasesBeside,
)
from triton_magics.harness.correctness.shape_classes import Shape, shape_cost
from triton_magics.harness.correctness.shape_variants import is_defined
from triton_magics.harness.correctness.special_values import HALF_DTYPES
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import Case

LARGE_ROWS = "the largest size"
UNEVEN_SIZE, MAX_UNEVEN = "the largest size less one", 2**25
EQUAL_LENGTH, MAX_EQUAL_DIMENSIONS = 16, 3  # with more, as in attention, tensors are alike
UNEVEN = ((3, 5), (3, 6, 2), (3, 3), (3,))  # batches, heads, heads of keys
# Heads of all batches fit groups of two and four, those of one do not.
UNEVEN_IN_ONE = ((4, 3), (4, 6, 3))
LENGTH_OF_ONE = (5, 1, 33)
MANY_LONG_ROWS = (4_001, 8_209)  # 12,000 blocks of 4096: an H200 works on some 2,000 at once
LONG_STRIDED = (3, 8_209)  # a kernel with a row of 40,009 in one block compiles for 6 s
FAR_COLUMNS = f"{layouts.PERMUTED} 0-1 step 9"
# The step from a batch to the next is another in these.
LAYOUTS_OF_BATCHES = (layouts.PADDED_MATRICES, layouts.PADDED_BATCHES, layouts.INTERLEAVED_HEADS)
LAYOUTS_OF_FIRST = (
    *LAYOUTS_OF_BATCHES, layouts.EXPANDED_MATRICES, layouts.EXPANDED_BUT_ROWS,
)  # fmt: skip
LAYOUTS_WITH_GAPS = (layouts.PADDED_MATRICES, layouts.PADDED_BATCHES)
WIDE_DIMENSIONS = (2, 2, 3, 1032)  # rows of whole vectors of 16 bytes
WIDE_BATCHES = (3, 5, 1032)
INEXACT = (41, 141, 55)  # 1 / 41 in float32, times 41, is 0.99999994
N_DRAWN = 2  # layouts of each tensor at a shape
MIN_DIMENSIONS_TO_TURN = 3  # an order of two is its own inverse
# Of four dimensions, the last two exchanged or the first two, and what does not lie side by side.
# Of the first three, an order that is not its own inverse.
TURNED_PAIRS = (
    "0-1-3-2 gaps 0-3-0-0", "1-0-3-2", "1-0-2-3 gaps 0-0-0-3", "0-1-3-2 gaps 0-0-3-0", "1-2-0-3",
)  # fmt: skip
N_FAR, MAX_FAR_TENSORS = 3, 3  # each takes 4 GiB, in 16 bits


class LayoutCases(CasesBeside):
    """Cases of layouts and lengths."""

    def with_layouts(self) -> list[Case]:
        """Return a case of each further layout for all tensors, and of most for each one alone.

        The shape is the cheapest one in which most tensors have the layout.
        """
        dtypes, cases = itertools.cycle(self._dtypes), []
        at_shapes = [(s, self.layouts_at(s)) for s in sorted(self._shapes.values(), key=_cost)]
        own_layouts = [name for name in layouts.NOT_COMBINED if name in self._op.layouts]
        if self._op.op_class == "matmul":  # a number for each row is a factor, not a matrix
            own_layouts = [name for name in own_layouts if name != layouts.EXPANDED_BUT_ROWS]
        for turn, layout in enumerate(own_layouts):
            takes = [(s, [k for k, have in at.items() if layout in have]) for s, at in at_shapes]
            shape, tensors = max(takes, key=lambda one: len(one[1]))
            has_several = len(tensors) > 1 and layout not in layouts.OF_ALL_TENSORS
            alone = [[name] for name in tensors] if has_several else []
            for names in ([tensors] if tensors else []) + alone:
                own = tuple((name, layout) for name in names)
                cases.append(self.case("", turn, shape=shape, layouts=own, dtype=next(dtypes)))
        return cases

    def with_permuted_dimensions(self) -> list[Case]:
        """Return cases in which each tensor has a layout of its own, drawn at random.

        The named ones are those that somebody has thought of: all their orders, for example, are
        their own inverse. Two dimensions have few others. Of four a kernel may take one pair apart
        and merge the other, so all tensors have each pair exchanged or apart.
        """
        if layouts.PERMUTED not in self._op.layouts:
            return []
        chance, dtypes = random.Random(self._seed), itertools.cycle(self._dtypes)  # noqa: S311
        cases = []
        for shape in self._shapes_to_permute():
            sizes = self._sizes_at(shape)
            dense = {n: layouts.draw_dense(n, chance) for n in map(len, sizes.values())}
            each = [{name: dense[len(own)] for name, own in sizes.items()}]
            each += [
                {name: layouts.draw(len(own), chance) for name, own in sizes.items()}
                for _ in range(N_DRAWN)
            ]
            four = [name for name, own in sizes.items() if len(own) == MANY_DIMENSIONS]
            pairs = TURNED_PAIRS if four else ()
            each += [dict.fromkeys(four, f"{layouts.PERMUTED} {pair}") for pair in pairs]
            for turn, drawn in enumerate(each[len(shape) < MIN_DIMENSIONS_TO_TURN :]):
                own = tuple((k, v) for k, v in drawn.items() if layouts.place(sizes[k], v))
                cases.append(self.case("", turn, shape=shape, layouts=own, dtype=next(dtypes)))
        return [case for case in cases if case.layouts]

    def _shapes_to_permute(self) -> list[Shape]:
        """Return a shape of each number of dimensions; of heads and batches several."""
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        several = (
            (*first, *base[len(first) :]) for first in UNEVEN if len(base) >= MANY_DIMENSIONS
        )
        shape = next((s for s in several if is_defined(self._op, s)), base)
        if not self.has_any_number_of_dimensions() or "another rank" not in self._shapes:
            return [shape]
        return [base, self._shapes["another rank"], FOUR_DIMENSIONS]

    def _sizes_at(self, shape: Shape) -> dict[str, Shape]:
        """Return the sizes of the inputs that are tensors of some dimensions, by name."""
        inputs = make_meta(self._op, self.case("", 0, shape=shape))
        named = zip(self._op.input_names(len(inputs)), inputs, strict=True)
        return {k: tuple(x.shape) for k, x in named if isinstance(x, torch.Tensor) and x.dim()}

    def with_equal_lengths(self) -> list[Case]:
        """Return a case for each of several tensors, transposed alone, in a shape of equal lengths.

        An output that is made like the wrong input has the right shape there.
        """
        shape = (EQUAL_LENGTH,) * len(operators.smallest_shape(self._op))
        is_taken = len(shape) <= MAX_EQUAL_DIMENSIONS and is_defined(self._op, shape)
        if not is_taken or layouts.TRANSPOSED not in self._op.layouts:
            return []
        dtypes = itertools.cycle(self._dtypes)
        at = self.layouts_at(shape)
        names = [name for name, have in at.items() if layouts.TRANSPOSED in have]
        return [
            self.case("", i, shape=shape, layouts=((name, layouts.TRANSPOSED),), dtype=next(dtypes))
            for i, name in enumerate(names if len(names) > 1 else ())
        ]

    def with_more_dimensions(self) -> list[Case]:
        """Return cases of three and four dimensions, of an op of any number.

        They have layouts of the first ones, or one of a single element in the middle. Those with
        gaps have wide rows, too, in a half type: a path for whole vectors may collapse them.
        """
        if not self.has_any_number_of_dimensions():
            return []
        dtype = self._dtypes[self._seed % len(self._dtypes)]  # a kernel for each would be compiled
        half = next((d for d in HALF_DTYPES if d in self._dtypes), dtype)
        cases = []
        each: list[tuple[Shape, str, str]]
        each = [(FOUR_DIMENSIONS, name, dtype) for name in LAYOUTS_OF_FIRST]
        each += [(WIDE_DIMENSIONS, name, half) for name in LAYOUTS_WITH_GAPS]
        each += [(shape, layouts.HEADERS, half) for shape in (WIDE_BATCHES, WIDE_DIMENSIONS)]
        each.append((LENGTH_OF_ONE, layouts.LOOSE_ONES, dtype))
        for turn, (shape, layout, own_dtype) in enumerate(each):
            at = self.layouts_at(shape) if layout in self._op.layouts else {}
            own = tuple((name, layout) for name, have in at.items() if layout in have)
            if own:
                cases.append(self.case("", turn, shape=shape, layouts=own, dtype=own_dtype))
        return cases

    def with_uneven_groups(self) -> list[Case]:
        """Return a case of each layout of the first dimensions, with lengths that no group fits.

        A program that takes several heads together goes past the last one of a batch there. Where
        the batches lie one after the other it meets the next one's heads. A group may be chosen by
        the heads of all batches, which fit in the last case.
        """
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        if len(base) < MANY_DIMENSIONS:
            return []
        dtype = self._dtypes[self._seed % len(self._dtypes)]
        cases = []
        each: list[tuple[tuple[Shape, ...], str]]
        each = [(UNEVEN, layout) for layout in LAYOUTS_OF_BATCHES]
        each.append((UNEVEN_IN_ONE, layouts.INTERLEAVED_HEADS))
        for turn, (lengths, layout) in enumerate(each):
            shapes = ((*first, *base[len(first) :]) for first in lengths)
            shape = next((s for s in shapes if is_defined(self._op, s)), base)
            at = self.layouts_at(shape) if layout in self._op.layouts else {}
            own = tuple((name, layout) for name, have in at.items() if layout in have)
            if own:
                cases.append(self.case("", turn, shape=shape, layouts=own, dtype=dtype))
        return cases

    def with_loose_ones(self) -> list[Case]:
        """Return a case of several heads with one position, and any stride of it.

        It is contiguous, and its stride says nothing of how far its rows lie apart.
        """
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        shapes = ((*first, 1, base[-1]) for first in UNEVEN)
        shape = next((s for s in shapes if len(s) == len(base) and is_defined(self._op, s)), None)
        if (
            len(base) < MANY_DIMENSIONS
            or shape is None
            or layouts.LOOSE_ONES not in self._op.layouts
        ):
            return []
        at = self.layouts_at(shape)
        own = tuple(
            (name, layouts.LOOSE_ONES) for name, have in at.items() if layouts.LOOSE_ONES in have
        )
        dtype = self._dtypes[self._seed % len(self._dtypes)]
        return [self.case("", 0, shape=shape, layouts=own, dtype=dtype)] if own else []

    def with_long_strided_row(self) -> list[Case]:
        """Return a case of rows of every ninth column, under 2^16 of them, that span over 2^16.

        An index of 16 bits holds the column there, and not its place.
        """
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        takes = self._op.op_class != "matmul" and layouts.PERMUTED in self._op.layouts
        if len(base) != 2 or not takes or not is_defined(self._op, LONG_STRIDED):
            return []
        own = ((next(iter(self.layouts_at(LONG_STRIDED))), FAR_COLUMNS),)
        dtype = "float32" if "float32" in self._dtypes else self._dtypes[0]
        extent = f"{LONG_STRIDED[-1]:,} columns, nine apart"
        return [self.case("", 0, shape=LONG_STRIDED, layouts=own, dtype=dtype, extent=extent)]

    def with_inexact_reciprocals(self) -> list[Case]:
        """Return a case of lengths whose float32 reciprocal, times the length, is less than 1.

        A kernel that divides an index by such a multiplication is one short at each multiple.
        """
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        n = len(base)
        shapes = [INEXACT[:n], (*base[:-2], INEXACT[0], *base[-1:])]
        if n >= MANY_DIMENSIONS:
            shapes = [(*first, INEXACT[0], base[-1]) for first in (*UNEVEN, base[:-2])]
        shape = next((s for s in shapes if len(s) == n and is_defined(self._op, s)), None)
        dtype = self._dtypes[(self._seed + 1) % len(self._dtypes)]
        return [self.case("", 1, shape=shape, dtype=dtype)] if shape else []

    def with_far_batches(self) -> list[Case]:
        """Return a case for each of a few tensors whose first dimension spans over 2^31 elements.

        It is a part of a cache that is so large. Offsets of 32 bits are too short there, as is an
        index type chosen by the number of elements. On a GPU only, and in a thorough plan.
        """
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        shape = (N_FAR, *base[1:])
        is_taken = layouts.PADDED_ROWS in self._op.layouts and is_defined(self._op, shape)
        if self._is_interpreted or not is_taken:
            return []
        dtype = next((d for d in HALF_DTYPES if d in self._dtypes), self._dtypes[0])
        case = self.case("", 0, shape=shape, dtype=dtype, extent="over 2^31 elements apart")
        names = [
            name
            for name, x in self.inputs_of(case).items()
            if is_floating(x) and layouts.place(tuple(x.shape), layouts.FAR_BATCHES)
        ]
        return [
            case.evolve(layouts=((name, layouts.FAR_BATCHES),)) for name in names[:MAX_FAR_TENSORS]
        ]

    def with_uneven_large_size(self) -> list[Case]:
        """Return a case of the largest size less one in each dimension, on a GPU.

        To divide by a multiplication and a shift is exact for powers of two and small indices.
        """
        shape = self._uneven_large_size()
        dtype = self._dtypes[self._seed % len(self._dtypes)]
        return [self.case("", 0, shape=shape, dtype=dtype, extent=UNEVEN_SIZE)] if shape else []

    def _uneven_large_size(self) -> Shape | None:
        shape = tuple(n - 1 for n in [*self._op.sizes.values()][-1])
        is_cheap = self._op.op_class != "matmul" and math.prod(shape) <= MAX_UNEVEN
        is_usable = not self._is_interpreted and is_cheap and is_defined(self._op, shape)
        return shape if is_usable else None

    def with_many_long_rows(self) -> list[Case]:
        """Return a case of more blocks of long rows than a GPU works on at once, of a reduction.

        Programs of a row that run at the same time have what the others store, as a rule, though
        nothing makes them wait.
        """
        is_taken = self._op.op_class == "reduction" and is_defined(self._op, MANY_LONG_ROWS)
        if self._is_interpreted or not is_taken:
            return []
        dtype = next((d for d in HALF_DTYPES if d in self._dtypes), self._dtypes[0])
        extent = f"{MANY_LONG_ROWS[0]:,} long rows"
        return [self.case("", 0, shape=MANY_LONG_ROWS, dtype=dtype, extent=extent)]

    def with_large_layout(self) -> list[Case]:
        """Return a case of the largest size in padded rows, less one where that is cheap, on a GPU.

        Index arithmetic for strides that a large contiguous tensor does not need is wrong there.
        """
        shape = self._uneven_large_size() or [*self._op.sizes.values()][-1]
        is_taken = layouts.PADDED_ROWS in self._op.layouts and is_defined(self._op, shape)
        if self._is_interpreted or not is_taken:
            return []
        names = [k for k, have in self.layouts_at(shape).items() if layouts.PADDED_ROWS in have]
        own = tuple((name, layouts.PADDED_ROWS) for name in names)
        dtype = random.Random(self._seed).choice(self._dtypes)  # noqa: S311 (replayed)
        case = self.case("", 0, shape=shape, layouts=own, dtype=dtype, extent=LARGE_ROWS)
        return [case] if own else []


def _cost(shape: Shape) -> tuple[bool, tuple[bool, int]]:
    """Return the order of shapes: a dimension of one element has no stride, so it comes last."""
    return 1 in shape[-2:], shape_cost(shape)
