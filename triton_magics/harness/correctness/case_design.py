"""The factors of an op's cases, and the cases that combine their values.

Each case of the design has a value of every factor: dtype, shape class, layout of each tensor,
regime, special values, scalars. A full plan has every pair of values, a thorough one every triple;
small shapes carry them. Where kernels are compiled, a case prefers values for which an earlier one
has compiled a kernel. Extents, a walk over the dimensions and the numbers that the source names are
added to that.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_numbers import (
    levels_at_numbers,
    moderate_shape,
    scalars_at_numbers,
    shapes_at_numbers,
    values_at_numbers,
    values_past_numbers,
)
from triton_magics.harness.correctness.case_order import alternate, put_specials_first
from triton_magics.harness.correctness.case_values import REGIMES
from triton_magics.harness.correctness.covering_array import Item, Row, covering_array, iter_rows
from triton_magics.harness.correctness.empty_cases import plan_empty_cases
from triton_magics.harness.correctness.layout_cases import LayoutCases
from triton_magics.harness.correctness.shape_classes import (
    classify,
    extents,
    has_many_programs,
    interpreter_cost,
    left_out_extents,
    representatives,
    shape_cost,
    whole_blocks,
)
from triton_magics.harness.correctness.shape_variants import (
    informative_scalars,
    is_refused,
    list_variants,
    shapes_of_several_blocks,
    vary_scalars,
    vary_shapes,
    walk_of_dimensions,
)
from triton_magics.harness.correctness.special_values import (
    LATE_PEAKS,
    NOT_COMBINED,
    SPECIALS,
    special_of,
)
from triton_magics.harness.correctness.usable_specials import usable_specials
from triton_magics.harness.correctness.value_cases import ValueCases
from triton_magics.languages.source_numbers import read_integers, read_numbers, read_thresholds
from triton_magics.model import (
    BESIDE,
    CONTIGUOUS,
    NORMAL,
    PLAIN,
    UNALIGNED,
    Case,
    LeftOut,
    PlanScope,
)
from triton_magics.model.overall_verdict import (
    DTYPE,
    LAYOUT,
    REGIME,
    SCALAR,
    SHAPE,
    SPECIAL,
    count_combinations,
)

STRENGTH = {"full": 2, "thorough": 3}
_QUICK_ROWS, _QUICK_SHAPES = 4, 2
SMALL_EXTENT = 2**16  # elements
NEW_KIND_COST = 1  # combinations; with 2 there are 2 % more cases, and kernels are 7 % fewer
_CPU = torch.device("cpu")


class Design:
    """The factors of an op's cases, and the cases that combine them."""

    def __init__(
        self, op: operators.Op, dtypes: Sequence[str], seed: int, *, is_interpreted: bool
    ) -> None:
        """List the factors.

        Args:
            op, dtypes, seed: of the plan.
            is_interpreted: an interpreter runs the kernels, on the CPU.
        """
        self._op, self._dtypes, self._seed = op, dtypes, seed
        self._is_interpreted = is_interpreted
        self._rank = len(operators.smallest_shape(op))
        self._shapes = representatives(op)
        self._tensors_at = functools.cache(functools.partial(_tensor_inputs, op))
        self._tensors = {name: self._tensors_at(shape) for name, shape in self._shapes.items()}
        self._factors = self._list_factors()

    def _list_factors(self) -> dict[str, list[Hashable]]:
        """Return the values of each factor, the plain one first."""
        op = self._op
        names = op.input_names(max(op.mutates, default=-1) + 1)
        mutated = {names[i] for i in op.mutates}
        offered: dict[str, list[Hashable]] = {}
        for tensors in self._tensors.values():
            for name, shape in tensors.items():
                names_so_far = offered.setdefault(LAYOUT + name, [])
                possible = layouts.available(shape, is_mutated=name in mutated)
                usual = (layout for layout in possible if layout not in layouts.NOT_COMBINED)
                new = [layout for layout in usual if layout in op.layouts]
                names_so_far += [layout for layout in new if layout not in names_so_far]
        specials = [*usable_specials(op, self._dtypes)]
        alone = [name for name in specials if name in NOT_COMBINED]
        of_plan = (op, self._dtypes, self._seed, self._shapes, specials)
        self._of_values = ValueCases(*of_plan, is_interpreted=self._is_interpreted)
        self._of_layouts = LayoutCases(*of_plan, is_interpreted=self._is_interpreted)
        return {
            DTYPE: list(self._dtypes),
            SHAPE: list(self._shapes),
            **offered,
            REGIME: [r for r in REGIMES if r not in op.skip_values],
            SPECIAL: [PLAIN, *(name for name in specials if name not in alone)],
            **{SCALAR + name: list(values) for name, values in op.scalars.items()},
        }

    def forbids(self, one: Item, other: Item) -> bool:
        """Return whether no case can have both values."""
        return self._forbidden_reason(one, other) is not None

    def _forbidden_reason(self, one: Item, other: Item) -> str | None:
        values = dict((one, other))
        scaled = values.get(REGIME, NORMAL) != NORMAL
        special = SPECIALS.get(str(values.get(SPECIAL)))
        if special and scaled and special.has_scale:
            return "these special values have a scale of their own"
        chosen = {values.get(REGIME), values.get(SPECIAL)}
        if any(operators.skips(self._op, str(name), str(values.get(DTYPE))) for name in chosen):
            return "the op leaves these values out in this dtype"
        own = special.dtypes if special else ()
        if own and values.get(DTYPE, own[0]) not in own:
            return "the special values are of another dtype"
        if (shape := values.pop(SHAPE, None)) is None:
            return None
        tensors = self._tensors[str(shape)]
        ((factor, value),) = values.items() or ((DTYPE, ""),)
        if factor == SPECIAL and value != PLAIN:
            rank = max((len(s) for s in tensors.values()), default=0)
            fits = any(SPECIALS[str(value)].fits(s) for s in tensors.values() if len(s) == rank)
            return None if fits else "the shape is too small for the special values"
        if factor.startswith(LAYOUT):
            at = tensors.get(factor.removeprefix(LAYOUT), ())
            has = value == CONTIGUOUS or layouts.place(at, str(value)) is not None
            return None if has else "in this shape the layout is the contiguous one"
        return None

    # ------------------------------------------------------------------------------ plans

    def quick(self, draw: random.Random) -> Iterator[Case]:
        """Yield the cases of a quick plan beside the sizes.

        Its shapes, dtypes and layouts are the same for each seed, so that they can be compiled
        before; their values are drawn.
        """
        op = self._op
        for dtype in self._dtypes:
            shape = self._shapes.get("odd", operators.smallest_shape(op))
            regimes = (r for r in op.quick_regimes if not operators.skips(op, r, dtype))
            yield from (Case(shape=shape, dtype=dtype, regime=r, seed=0) for r in regimes)
        first = self._dtypes[0]
        yield from (Case(shape=s, dtype=first, seed=0) for s in op.shapes[:_QUICK_SHAPES])
        whole = iter_rows(self._factors, strength=2, forbids=self.forbids, seed=0)
        fixed = {name for name in self._factors if name in (DTYPE, SHAPE) or LAYOUT in name}
        rows = [
            {k: v for k, v in row.items() if k in fixed}
            for row in _with_longest(whole, self._shapes, _QUICK_ROWS)
        ]
        drawn = iter_rows(
            self._factors, strength=2, forbids=self.forbids, start=rows, seed=draw.getrandbits(31)
        )
        yield from (self._case(row) for row in itertools.islice(drawn, len(rows)))

    def complete(self, plan: str, source: str) -> tuple[list[Case], PlanScope]:
        """Return the cases of a full or thorough plan beside the sizes, and their scope.

        A walk over the dimensions comes first, then plain shapes and extents. In an interpreter
        these are in the order of their cost, with a layout or a combination after each: a budget
        that ends early has seen some of every kind.
        """
        plain = [self._plain_row(shape) for shape in self._op.shapes]
        starts = [*plain, *self._plain_rows_of_layouts()]
        array = covering_array(
            self._factors, strength=STRENGTH[plan], forbids=self.forbids, start=starts,
            seed=self._seed, trait=_specialisation,
            new_kind_cost=0 if self._is_interpreted else NEW_KIND_COST,
        )  # fmt: skip
        own = [self._case(row) for row in array.rows]
        for i, shape in enumerate(self._op.shapes):  # the shape itself, not its representative
            own[i] = own[i].evolve(shape=shape)
        layout_cases = [*own[len(plain) : len(starts)]]
        layout_cases += self._of_layouts.with_permuted_dimensions()
        layout_cases += [self._case(row) for row in self._plain_rows_of_other_dtypes()]
        layout_cases += [*self._of_layouts.with_layouts(), *self._of_layouts.with_equal_lengths()]
        layout_cases += [*self._of_layouts.with_more_dimensions(), *self._late_peaks()]
        layout_cases += self._of_layouts.with_uneven_groups()
        layout_cases += self._of_layouts.with_inexact_reciprocals()
        layout_cases += self._of_layouts.with_loose_ones()
        whole = (shape for shape in whole_blocks(self._op) if not is_refused(self._op, shape))
        blocks = [self._case(self._plain_row(shape), shape) for shape in whole]
        block_cases = vary_scalars(self._op, blocks, self._dtypes)
        variants = list_variants(self._op)
        drawn = vary_shapes(own[len(starts) :], variants, self._fits_shape, self._seed)
        drawn += self._of_values.with_values()
        left_out = left_out_extents(self._op, plan, is_interpreted=self._is_interpreted)
        at_extents = [
            self._extent_cases(name, shape, plan)
            for name, shape in extents(self._op, is_interpreted=self._is_interpreted).items()
            if name not in left_out and (self._op.extents or not is_refused(self._op, shape))
        ]
        first = [case for at in at_extents for case in at[:1]]
        rest = [case for at in at_extents for case in at[1:]]
        rest += [*self._of_layouts.with_large_layout(), *self._of_layouts.with_long_strided_row()]
        rest += self._of_layouts.with_uneven_large_size()
        rest += self._of_layouts.with_many_long_rows()
        far = self._of_layouts.with_far_batches()
        rest += far if plan == "thorough" else []
        if far and plan != "thorough":
            left_out |= {far[0].extent: "only in the thorough plan"}
        empty = plan_empty_cases(self._op, self._of_values.case("powers of two", 0))
        begin = [*own[: len(plain)], *empty, *first, *block_cases]
        others = [*layout_cases, *drawn]
        begin += self._number_cases(source, [*begin, *others, *rest], plan)
        if self._is_interpreted:
            begin.sort(key=lambda case: interpreter_cost(self._op, case.shape))
            begin, layout_cases = alternate(begin, layout_cases)
            others = put_specials_first(self._op, [*layout_cases, *drawn])
            begin, others = alternate(begin, others)
        cases = [*self._walk(), *begin, *others, *rest]
        return cases, PlanScope(
            strength=STRENGTH[plan],
            n_possible=array.n_possible,
            n_covered=count_combinations(cases, STRENGTH[plan]),
            impossible=self._explain_impossible(),
            extents=tuple(LeftOut(item=name, reason=why) for name, why in left_out.items()),
        )

    def _plain_row(self, shape: tuple[int, ...]) -> Row:
        """Return the row of a declared shape with plain inputs; its scalars are open."""
        row: Row = {name: values[0] for name, values in self._factors.items()}
        row = {name: value for name, value in row.items() if not name.startswith(SCALAR)}
        return row | {SHAPE: classify(shape, self._rank)}

    def _plain_rows_of_other_dtypes(self) -> list[Row]:
        """Return a small plain row of each further dtype, for its series of calls."""
        shapes = [s for s in self._shapes.values() if math.prod(s[:-1]) > 1 and s[-1] > 1]
        if not shapes:
            return []
        scalars = {k: v[0] for k, v in self._factors.items() if k.startswith(SCALAR)}
        row = self._plain_row(min(shapes, key=math.prod)) | scalars
        return [row | {DTYPE: dtype} for dtype in self._dtypes[1:]]

    def _late_peaks(self) -> list[Case]:
        """Return cases of each dtype whose largest values are in the last of several blocks."""
        shapes = shapes_of_several_blocks(self._op, is_interpreted=self._is_interpreted)
        if not shapes or LATE_PEAKS not in self._factors[SPECIAL]:
            return []
        draw = random.Random(f"{self._seed} late peaks")  # noqa: S311 (replayed from the seed)
        wide = {REGIME: "x10"} if "x10" in self._factors[REGIME] else {}
        cases = []
        for dtype in self._dtypes:
            shape = draw.choice(shapes)
            scalars = {k: draw.choice(v) for k, v in self._factors.items() if k.startswith(SCALAR)}
            row = self._plain_row(shape) | scalars | wide | {DTYPE: dtype, SPECIAL: LATE_PEAKS}
            if not _has_forbidden(row, self.forbids):
                cases.append(self._case(row, shape))
        return cases

    def _plain_rows_of_layouts(self) -> list[Row]:
        """Return small plain rows in which all tensors have one layout, each layout once.

        Only plain values are called with again, in new memory: memory that ends with the tensor,
        as a user's does, while that of other cases has guard bands. Equal strides are as usual as
        equal shapes, and an array has each pair of layouts only once, at any shape.
        """
        offered = {k: values for k, values in self._factors.items() if k.startswith(LAYOUT)}
        rows: list[Row] = []
        for layout in dict.fromkeys(v for values in offered.values() for v in values):
            own: Row = {k: layout for k, values in offered.items() if layout in values}
            if layout != CONTIGUOUS:
                rows += self._fit(own) or [r for k, v in own.items() for r in self._fit({k: v})]
        return rows

    def _fit(self, row: Row) -> list[Row]:
        """Return the row with plain values, in the smallest shape that can have it.

        A dimension of one element has no stride, so several rows and columns are preferred.
        """
        costs = {name: (1 in shape[-2:], shape_cost(shape)) for name, shape in self._shapes.items()}
        plain: Row = {REGIME: NORMAL, SPECIAL: PLAIN}
        whole = (row | plain | {SHAPE: name} for name in sorted(costs, key=lambda n: costs[n]))
        return list(itertools.islice((r for r in whole if not _has_forbidden(r, self.forbids)), 1))

    def _fits_shape(self, case: Case, shape: tuple[int, ...]) -> bool:
        """Return whether a case can have another shape: its layouts and values exist."""
        tensors = self._tensors_at(shape)
        rank = max((len(s) for s in tensors.values()), default=0)
        special = special_of(case.special)
        if any(operators.skips(self._op, v, case.dtype) for v in (case.regime, case.special)):
            return False
        return all(
            layouts.place(tensors.get(name, ()), value) is not None for name, value in case.layouts
        ) and (special is None or any(special.fits(s) for s in tensors.values() if len(s) == rank))

    def _extent_cases(self, name: str, shape: tuple[int, ...], plan: str) -> list[Case]:
        """Return the cases of an extent: plain, one with all else; thorough: every value once.

        One of many rows has the plain one alone in the interpreter.
        """
        factors = {k: v for k, v in self._factors.items() if k != SHAPE}
        factors |= {SCALAR + name: [*v] for name, v in informative_scalars(self._op).items()}
        draw = random.Random(f"{self._seed} {name}")  # noqa: S311 (replayed from the seed)
        columns = {k: draw.sample(v, len(v)) for k, v in factors.items()}
        n = max(map(len, columns.values())) if plan == "thorough" else 1
        rows: list[Row] = [
            {k: v[0] for k, v in factors.items()},
            *({k: v[i % len(v)] for k, v in columns.items()} for i in range(n)),
        ]
        only_plain = self._is_interpreted and has_many_programs(self._op, shape)
        rows = rows[:1] if only_plain else rows
        if math.prod(shape) <= SMALL_EXTENT:  # a path for such a shape is often one of a flag too
            flags = [(k, v) for k, v in factors.items() if {*v} == {False, True}]
            rows += [rows[0] | {name: values[1]} for name, values in flags]
        plain = {REGIME: NORMAL, SPECIAL: PLAIN}  # in place of values that the rest can't have
        rows = [row | plain if _has_forbidden(row, self.forbids) else row for row in rows]
        possible = [row for row in rows if not _has_forbidden(row, self.forbids)]
        return [self._case(row, shape).evolve(extent=name) for row in possible]

    def _walk(self) -> list[Case]:
        """Return plain cases whose shapes differ by one dimension from one to the next.

        With most rows the scalars have their second values in between: a version may keep what
        holds for one value alone by the shape.
        """
        walk = walk_of_dimensions(self._op)
        first = tuple((name, values[0]) for name, values in self._op.scalars.items())
        other = tuple((name, values[:2][-1]) for name, values in self._op.scalars.items())
        steps = [(shape, first) for shape in walk]
        if other != first and walk:
            one_lap = range(min(len(walk), 2 * self._rank + 1))
            place = max(one_lap, key=lambda i: walk[i][-2:-1]) + 1
            steps[place:place] = [(walk[place - 1], other), (walk[place - 1], first)]
        return [
            self._case(self._plain_row(shape), shape).evolve(scalars=scalars, shape_class=BESIDE)
            for shape, scalars in steps
        ]

    def _number_cases(self, source: str, cases: Sequence[Case], plan: str) -> list[Case]:
        """Return plain cases with the numbers of the source that none of these cases has."""
        sizes = itertools.islice(self._op.sizes.values(), 1 if self._is_interpreted else None)
        shapes = shapes_at_numbers(
            self._op, read_integers(source), {*sizes, *(case.shape for case in cases)}, plan=plan,
            is_interpreted=self._is_interpreted,
        )  # fmt: skip
        own = [
            self._case(self._plain_row(shape), shape).evolve(extent=name)
            for name, shape in shapes.items()
        ]
        numbers = read_numbers(source)
        near = values_at_numbers(self._op, numbers, self._dtypes)
        thresholds = read_thresholds(source)
        near += values_past_numbers(self._op, numbers, thresholds, self._dtypes)
        with_values = [
            self._of_values.case("powers of two", i, special=values, dtype=dtype)
            for i, (values, dtype) in enumerate(near)
        ]
        first = {name: values[0] for name, values in self._op.scalars.items()}
        shape = {"shape": moderate_shape(self._op)} if self._op.check else {}
        with_scalars = [
            self._of_values.case("odd", 0, scalars=tuple({**first, name: value}.items()), **shape)
            for name, value in scalars_at_numbers(self._op, numbers, thresholds)
        ]
        structured = self._of_values.structures_past(read_integers(source))
        levels = levels_at_numbers(numbers, thresholds, n_most=1 if self._is_interpreted else 2)
        structured += self._of_values.at_levels(levels)
        plain = vary_scalars(self._op, own, self._dtypes)
        return [*plain, *structured, *with_values, *with_scalars]

    def _case(self, row: Row, shape: tuple[int, ...] | None = None) -> Case:
        values: dict[str, Any] = dict(row)
        offered = {k.removeprefix(LAYOUT): v for k, v in values.items() if k.startswith(LAYOUT)}
        scalars = {k.removeprefix(SCALAR): v for k, v in values.items() if k.startswith(SCALAR)}
        name = values.get(SHAPE, "")
        return Case(
            shape=shape or self._shapes[name],
            dtype=values[DTYPE],
            shape_class=name,
            regime=values[REGIME],
            special=values[SPECIAL],
            layouts=tuple((k, v) for k, v in offered.items() if v != CONTIGUOUS),
            scalars=tuple(scalars.items()),
            seed=0,
        )

    def _explain_impossible(self) -> tuple[LeftOut, ...]:
        """Return the pairs that no case can have, by reason, each with an example."""
        items = [(name, value) for name, values in self._factors.items() for value in values]
        pairs = [(a, b) for a, b in itertools.combinations(items, 2) if a[0] != b[0]]
        reasons = [(reason, a, b) for a, b in pairs if (reason := self._forbidden_reason(a, b))]
        counts = Counter(reason for reason, *_ in reasons)
        examples = {reason: f"{a[1]} with {b[1]}" for reason, a, b in reversed(reasons)}
        return tuple(LeftOut(item=examples[r], reason=r, n=n) for r, n in counts.items())


def _specialisation(item: Item) -> Hashable:
    """Return what a value contributes to the specialisation of most kernels.

    Compilers specialise on dtypes, constants, and on the alignment of each pointer.
    """
    factor, value = item
    if factor in (DTYPE, SHAPE):
        return item
    return (factor, value == UNALIGNED) if factor.startswith(LAYOUT) else None


def _with_longest(
    rows: Iterable[Row], shapes: Mapping[str, tuple[int, ...]], n: int
) -> Iterator[Row]:
    """Yield the first n rows; the last of them has the longest row of a tensor, if none before."""
    longest = max(shapes, key=lambda name: shapes[name][-1:], default=None)
    is_there = False
    for row in rows:
        is_there = is_there or row.get(SHAPE) == longest
        if n > 1 or is_there:
            yield row
            n -= 1
        if not n:
            return


def _has_forbidden(row: Row, forbids: Any) -> bool:
    return any(forbids(a, b) for a, b in itertools.combinations(row.items(), 2))


def _tensor_inputs(op: operators.Op, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor that `make_inputs` makes for a shape, by name."""
    case = Case(shape=shape, dtype=op.dtypes[0], seed=0)
    inputs = make_pristine(op, case, _CPU)
    named = zip(op.input_names(len(inputs)), inputs, strict=True)
    return {name: tuple(x.shape) for name, x in named if isinstance(x, torch.Tensor)}
