"""Cases beside the design: layouts and values that are not combined with all else.

Each is a small case of its own. A covering array with them would have many more rows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.case_inputs import make_meta, make_pristine
from triton_magics.harness.correctness.case_numbers import is_finite_at
from triton_magics.harness.correctness.case_values import (
    are_alike,
    find_parts,
    has_bytes,
    is_transpose,
)
from triton_magics.harness.correctness.shape_classes import (
    OVER_2_18,
    OVER_65_536,
    Shape,
    shape_cost,
)
from triton_magics.harness.correctness.shape_variants import (
    informative_scalars,
    is_defined,
    keep_orders,
    shapes_of_several_blocks,
)
from triton_magics.harness.correctness.special_values import (
    BLOCK_OF_MINUS_INF,
    BLOCK_OF_ZEROS,
    BLOCK_VALUES,
    FAR_ROWS,
    HALF_DTYPES,
    LATE_PEAKS,
    LONE_ELEMENT,
    MANY_ROW_VALUES,
    SHARED_VALUES,
    SMALL_VALUES,
    ZEROS_IN,
    skips,
    special_of,
)
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import BESIDE, NORMAL, Case

# Rows, more than there are programs that take one row after the other.
MANY_ROWS, MANY_ROWS_INTERPRETED = 4_099, 201
LARGE_ROWS = "the largest size"
LONG = 8_209  # columns
LONG_ROW_VALUES = (LATE_PEAKS, LONE_ELEMENT, BLOCK_OF_MINUS_INF, BLOCK_OF_ZEROS)
EQUAL_LENGTH, MAX_EQUAL_DIMENSIONS = 16, 3  # with more, as in attention, tensors are alike
MANY_DIMENSIONS, UNEVEN = 4, ((3, 5), (3, 6, 2), (3, 3), (3,))  # batches, heads, heads of keys
FOUR_DIMENSIONS, LENGTH_OF_ONE = (2, 3, 2, 33), (5, 1, 33)
# The step from a batch to the next is another in these.
LAYOUTS_OF_BATCHES = (layouts.PADDED_MATRICES, layouts.PADDED_BATCHES, layouts.INTERLEAVED_HEADS)
LAYOUTS_OF_FIRST = (
    *LAYOUTS_OF_BATCHES, layouts.EXPANDED_MATRICES, layouts.EXPANDED_BUT_ROWS,
)  # fmt: skip
_CPU = torch.device("cpu")


class CasesBeside:
    """The cases of an op beside its design."""

    def __init__(
        self,
        op: operators.Op,
        dtypes: Sequence[str],
        seed: int,
        shapes: Mapping[str, Shape],
        values: Sequence[str],
        *,
        is_interpreted: bool,
    ) -> None:
        """Take what the design has.

        Args:
            op, dtypes, seed: of the plan.
            shapes: a cheap one of each class.
            values: the special values that mean something for the op.
            is_interpreted: an interpreter runs the kernels, some milliseconds for each program.
        """
        self._op, self._dtypes, self._seed = op, dtypes, seed
        self._shapes, self._values = shapes, values
        self._is_interpreted = is_interpreted
        self._scalars = informative_scalars(op)

    def case(self, shape_class: str, turn: int, **changes: Any) -> Case:
        """Return a plain case of a small shape with changes; its scalars take turns."""
        shape = self._shapes.get(shape_class) or self._shapes.get("odd")
        shape = shape or operators.smallest_shape(self._op)
        scalars = {name: values[turn % len(values)] for name, values in self._scalars.items()}
        plain = Case(shape=shape, dtype=self._dtypes[0], shape_class=BESIDE, seed=0)
        return plain.evolve(**{"scalars": tuple(scalars.items()), **changes})

    def with_values(self) -> list[Case]:
        """Return the cases of all of the values."""
        return [
            *self._with_small_values(),
            *self._with_shared_memory(),
            *self._with_zeros(),
            *self._with_weights(),
            *self._with_many_rows(),
            *self._with_parameters_of_zero(),
            *self._with_structures_of_long_rows(),
        ]

    def _with_parameters_of_zero(self) -> list[Case]:
        """Return cases with 0 for each number that is never declared as 0, where the op is finite.

        `eps or 1e-5` takes 0 for a parameter that is not given. What is added shows beside tiny
        values.
        """
        names = [
            name
            for name, declared in self._op.scalars.items()
            if all(type(value) is float and value for value in declared)
            and is_finite_at(self._op, name, 0.0)
        ]
        regimes = [r for r in (NORMAL, "tiny") if r not in self._op.skip_values]
        first = {name: values[0] for name, values in self._op.scalars.items()}
        dtypes = itertools.cycle(self._dtypes)
        return [
            self.case(
                "odd", 0, dtype=next(dtypes), regime=regime,
                scalars=tuple({**first, name: 0.0}.items()),
            )
            for name, regime in itertools.product(names, regimes)
        ]  # fmt: skip

    def _with_small_values(self) -> list[Case]:
        """Return a small case of each dtype with each of the values that need no other shape."""
        own = [name for name in self._values if name in SMALL_VALUES]
        return [
            self.case("powers of two", turn, special=values, dtype=dtype)
            for turn, (values, dtype) in enumerate(itertools.product(own, self._dtypes))
            if self._has_values(values, dtype)
        ]

    def _with_shared_memory(self) -> list[Case]:
        """Return cases in which inputs are one tensor, its transpose or its parts."""
        cases = []
        several = [FOUR_DIMENSIONS] if self._has_any_number_of_dimensions() else []
        for turn, values in enumerate(SHARED_VALUES):
            dtype = self._dtypes[turn % len(self._dtypes)]
            plain = self.case("powers of two", turn, dtype=dtype)
            square = (*plain.shape[:-2], *[min(plain.shape[-2:])] * 2)
            shapes = [s for s in (plain.shape, square) if len(s) == len(plain.shape)] + several
            fitting = [s for s in shapes if self._can_share(plain.evolve(shape=s), values)]
            if values in self._values and fitting and self._has_values(values, dtype):
                case = plain.evolve(shape=fitting[0], special=values)
                cases += [case, *self._with_other_factor(case, turn)]
        return cases

    def _with_other_factor(self, case: Case, turn: int) -> list[Case]:
        """Return the case with other values of its parameters that are no switches.

        Where inputs share memory, a kernel has a shorter way for some of them.
        """
        scalars = self.case("", turn + 1).scalars
        has_factors = any(type(value) is float for _, value in scalars)
        return [case.evolve(scalars=scalars)] if has_factors and scalars != case.scalars else []

    def _with_weights(self) -> list[Case]:
        """Return cases of each dtype, in several blocks, whose weights need all blocks.

        One element or row weighs more than all others, which a kernel may leave out as too light.
        Or all products are far below zero, where a maximum that begins at 0 is wrong.
        """
        shapes = shapes_of_several_blocks(self._op, is_interpreted=self._is_interpreted)
        own = [name for name in self._values if name in BLOCK_VALUES]
        return [
            self.case("", turn, special=values, dtype=dtype, shape=shapes[turn % len(shapes)])
            for turn, (values, dtype) in enumerate(itertools.product(own, self._dtypes))
            if shapes and self._has_values(values, dtype)
        ]

    def _with_structures_of_long_rows(self) -> list[Case]:
        """Return cases of rows of several long blocks with the structures that blocks have.

        A block that is all -inf, or far below one element, is one of 4096 in a kernel for long
        rows. Over 10^5 elements that are e^11 times lighter than one weigh as much as that one.
        What a program stores of its block in 16 bits is lost far from zero.
        """
        if self._op.op_class != "reduction" or len(self._shapes.get("odd", ())) < 2:
            return []
        widest = OVER_65_536 if self._is_interpreted else OVER_2_18
        dtype = self._dtypes[self._seed % len(self._dtypes)]  # a kernel for each would be compiled
        half = next((d for d in HALF_DTYPES if d in self._dtypes), dtype)
        each = [(LONG, FAR_ROWS, half), *((LONG, values, dtype) for values in LONG_ROW_VALUES)]
        each.append((widest, LONE_ELEMENT, dtype))
        first = self._shapes["odd"][:-2]
        return [
            self.case(
                "", 0, special=values, dtype=own, shape=(*first, 3, columns),
                extent=f"{columns:,} columns",
            )
            for columns, values, own in each
            if values in self._values
            and self._has_values(values, own)
            and is_defined(self._op, (*first, 3, columns))
        ]  # fmt: skip

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
        inputs = self._inputs_of(self.case("powers of two", 0)).values()
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

    def with_layouts(self) -> list[Case]:
        """Return a case of each further layout for all tensors, and of most for each one alone.

        The shape is the cheapest one in which most tensors have the layout.
        """
        dtypes, cases = itertools.cycle(self._dtypes), []
        at_shapes = [(s, self._layouts_at(s)) for s in sorted(self._shapes.values(), key=_cost)]
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

    def with_equal_lengths(self) -> list[Case]:
        """Return a case for each of several tensors, transposed alone, in a shape of equal lengths.

        An output that is made like the wrong input has the right shape there.
        """
        shape = (EQUAL_LENGTH,) * len(operators.smallest_shape(self._op))
        is_taken = len(shape) <= MAX_EQUAL_DIMENSIONS and is_defined(self._op, shape)
        if not is_taken or layouts.TRANSPOSED not in self._op.layouts:
            return []
        dtypes = itertools.cycle(self._dtypes)
        at = self._layouts_at(shape)
        names = [name for name, have in at.items() if layouts.TRANSPOSED in have]
        return [
            self.case("", i, shape=shape, layouts=((name, layouts.TRANSPOSED),), dtype=next(dtypes))
            for i, name in enumerate(names if len(names) > 1 else ())
        ]

    def with_more_dimensions(self) -> list[Case]:
        """Return cases of three and four dimensions, of an op of any number.

        They have layouts of the first ones, or one of a single element in the middle.
        """
        if not self._has_any_number_of_dimensions():
            return []
        dtype = self._dtypes[self._seed % len(self._dtypes)]  # a kernel for each would be compiled
        cases = []
        each: list[tuple[Shape, str]] = [(FOUR_DIMENSIONS, name) for name in LAYOUTS_OF_FIRST]
        each.append((LENGTH_OF_ONE, layouts.LOOSE_ONES))
        for turn, (shape, layout) in enumerate(each):
            at = self._layouts_at(shape) if layout in self._op.layouts else {}
            own = tuple((name, layout) for name, have in at.items() if layout in have)
            if own:
                cases.append(self.case("", turn, shape=shape, layouts=own, dtype=dtype))
        return cases

    def _has_any_number_of_dimensions(self) -> bool:
        has_several = len({len(shape) for shape in self._op.shapes}) > 1
        return has_several and is_defined(self._op, FOUR_DIMENSIONS)

    def with_uneven_groups(self) -> list[Case]:
        """Return a case of each layout of the first dimensions, with lengths that no group fits.

        A program that takes several heads together goes past the last one of a batch there. Where
        the batches lie one after the other it meets the next one's heads.
        """
        base = self._shapes.get("odd") or operators.smallest_shape(self._op)
        if len(base) < MANY_DIMENSIONS:
            return []
        shapes = ((*first, *base[len(first) :]) for first in UNEVEN)
        shape = next((s for s in shapes if is_defined(self._op, s)), base)
        dtype = self._dtypes[self._seed % len(self._dtypes)]
        cases = []
        for turn, layout in enumerate(LAYOUTS_OF_BATCHES):
            at = self._layouts_at(shape) if layout in self._op.layouts else {}
            own = tuple((name, layout) for name, have in at.items() if layout in have)
            if own:
                cases.append(self.case("", turn, shape=shape, layouts=own, dtype=dtype))
        return cases

    def with_large_layout(self) -> list[Case]:
        """Return a case of the largest size in padded rows, on a GPU.

        Index arithmetic for strides that a large contiguous tensor does not need is wrong there.
        """
        shape = [*self._op.sizes.values()][-1]
        is_taken = layouts.PADDED_ROWS in self._op.layouts and is_defined(self._op, shape)
        if self._is_interpreted or not is_taken:
            return []
        names = [k for k, have in self._layouts_at(shape).items() if layouts.PADDED_ROWS in have]
        own = tuple((name, layouts.PADDED_ROWS) for name in names)
        dtype = random.Random(self._seed).choice(self._dtypes)  # noqa: S311 (replayed)
        case = self.case("", 0, shape=shape, layouts=own, dtype=dtype, extent=LARGE_ROWS)
        return [case] if own else []

    def _layouts_at(self, shape: Shape) -> dict[str, tuple[str, ...]]:
        """Return the layouts that each tensor can have at a shape, by name."""
        inputs = make_meta(self._op, self.case("", 0, shape=shape))
        return {
            name: layouts.available(tuple(x.shape), is_mutated=i in self._op.mutates)
            for i, (name, x) in enumerate(
                zip(self._op.input_names(len(inputs)), inputs, strict=True)
            )
            if isinstance(x, torch.Tensor)
        }

    def _inputs_of(self, case: Case) -> dict[str, Any]:
        """Return the inputs of a case by name."""
        inputs = make_pristine(self._op, case, _CPU)
        return dict(zip(self._op.input_names(len(inputs)), inputs, strict=True))

    def _can_share(self, case: Case, values: str) -> bool:
        """Return whether the op takes this shape, and several of its inputs can share memory so."""
        special = special_of(values)
        if special is None or not is_defined(self._op, case.shape):
            return False
        inputs = [*self._inputs_of(case).values()]
        if special.transposes:
            return any(is_transpose(y, x) for x, y in itertools.combinations(inputs, 2))
        if (special.is_projection or special.is_sliced) and not find_parts(inputs, special):
            return False
        n_least = 2 if special.alone is None else 3
        return any(sum(are_alike(x, y) for y in inputs) >= n_least for x in inputs)


def _cost(shape: Shape) -> tuple[bool, tuple[bool, int]]:
    """Return the order of shapes: a dimension of one element has no stride, so it comes last."""
    return 1 in shape[-2:], shape_cost(shape)
