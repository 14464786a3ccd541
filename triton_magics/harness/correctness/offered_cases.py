"""Cases of many shapes, layouts and scalars, among which a plan finds what it lacks."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import torch

from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.shape_classes import (
    MAX_FULL,
    MAX_FULL_COLUMNS,
    Shape,
    extents,
    interpreter_cost,
)
from triton_magics.harness.correctness.shape_variants import keep_orders
from triton_magics.model import BESIDE, CONTIGUOUS, PLAIN, Case

N_DRAWN, MAX_TRIES = 300, 3000  # cheap shapes of drawn lengths; draws for them
MAX_OFFERED = 600  # cases
MAX_MS = 2600  # of a case in the interpreter
_TILE_MS = 3  # of a product of two tiles; of another block 1
MAX_ELEMENTS = 5 * 2**18  # there, of the largest input: over 2^20
MAX_RESULT = 2**30  # elements of an intermediate result on a GPU: 8 GiB in float64
_FEW_SHAPES = 3
_MOST_PARAMETERS = 4
_MOST_NUMBERS = 4  # of a condition, the largest
_SMALLEST_ADDED, _MOST_ADDED = 8, 6  # numbers of a source of which two are added
_SMALLEST_LIMIT = 3  # smaller numbers of a source are seldom limits of a path


def interpreter_ms(op: operators.Op, shape: Shape) -> int:
    """Return about how many milliseconds a usual kernel takes in the interpreter."""
    return interpreter_cost(op, shape) * (_TILE_MS if op.op_class == "matmul" else 1)


def declared_lengths(op: operators.Op) -> list[set[int]]:
    """Return the lengths of each dimension in the shapes that an op declares, extents too."""
    limits = (s for kind in (False, True) for s in extents(op, is_interpreted=kind).values())
    shapes = [*_shapes_of_rank(op), *limits]
    rank = len(operators.smallest_shape(op))
    return [{s[dim] for s in shapes if len(s) == rank} for dim in range(rank)]


def neighbors(
    op: operators.Op, case: Case, declared: Sequence[set[int]], numbers: Sequence[int] = ()
) -> list[Case]:
    """Return cases like this one, but for one length or the op's parameters.

    A length is one step more or less, so that one block more is needed, or one has a part only. Or
    it is a number or one more, or makes a product of neighboring lengths so.

    Args:
        op: the op.
        case: one of those on offer.
        declared: the op's declared lengths.
        numbers: of a condition.
    """
    plain, shapes = case.evolve(special=PLAIN), []
    for dim, lengths in enumerate(declared):
        step, n = math.gcd(*lengths), case.shape[dim]
        others = (n + step, n - step) if n > 2 * step else (n + step,)
        near = [m for m in others if min(lengths) <= m <= max(lengths)]
        shapes += [_with_length(case.shape, dim, m) for m in near]
    most = [max(lengths) for lengths in declared]
    at_numbers = [
        shape
        for shape in _usable(op, _at_numbers(case.shape, numbers))
        if all(n <= limit for n, limit in zip(shape, most, strict=False))
        and _is_moderate(op, shape)
    ]
    own = dict.fromkeys((*_usable(op, shapes), *at_numbers))
    parameters = [
        tuple(zip(op.scalars, values, strict=True))
        for values in itertools.product(*op.scalars.values())
    ][:_MOST_PARAMETERS]
    return [
        *(plain.evolve(shape=shape) for shape in own if shape != case.shape),
        *(plain.evolve(scalars=values) for values in parameters if values != case.scalars),
    ]


def _with_length(shape: Shape, dim: int, n: int) -> Shape:
    return (*shape[:dim], n, *shape[dim + 1 :])


def _at_numbers(shape: Shape, numbers: Sequence[int]) -> list[Shape]:
    """Return the shapes with one other length, in which it or a product is a number or just over.

    A product is of all lengths, of the first or of the last ones. Or the length, or a product of
    the first ones, is that many times another length.
    """
    rank = len(shape)
    ends = [*((0, n) for n in range(1, rank + 1)), *((n, rank) for n in range(1, rank))]
    ranges = dict.fromkeys((*ends, *((dim, dim + 1) for dim in range(rank))))
    shapes = []
    for number, (start, end) in itertools.product(sorted(numbers)[-_MOST_NUMBERS:], ranges):
        others = [*range(start), *range(end, rank)] if start == 0 or end - start == 1 else []
        for dim in range(start, end):
            rest = max(math.prod(shape[start:dim]) * math.prod(shape[dim + 1 : end]), 1)
            least = math.ceil(number / rest)
            times = [math.ceil(number * shape[other] / rest) for other in others]
            shapes += [_with_length(shape, dim, n) for n in (least, least + 1, *times)]
    return [s for s in shapes if min(s) > 0]


def _is_moderate(op: operators.Op, shape: Shape) -> bool:
    """Return whether a GPU computes this shape quickly, and compiles a row of it.

    The product of all dimensions counts the operations of a matrix product. Where an op counts the
    elements of its largest intermediate result, these are limited, and the elements of its inputs.
    """
    if shape[-1] > MAX_FULL_COLUMNS:
        return False
    if op.scratch is None:
        return math.prod(shape) <= MAX_FULL
    is_small = operators.largest_input(op, shape) <= MAX_FULL
    return is_small and count_results(op, shape) <= MAX_RESULT


def count_results(op: operators.Op, shape: Shape) -> int:
    """Return the elements of the largest intermediate result; 0 where the op counts none."""
    if op.scratch is None:
        return 0
    try:
        return int(op.scratch(*operators.inputs_without_memory(op, shape, op.dtypes[0])))
    except Exception:  # noqa: BLE001 (the op's own: 33 heads may not be shared by 2)
        return 0


def _shapes_of_rank(op: operators.Op) -> list[Shape]:
    """Return the declared shapes with as many dimensions as the smallest one."""
    rank = len(operators.smallest_shape(op))
    return [s for s in (*op.shapes, *op.sizes.values()) if len(s) == rank]


def _usable(op: operators.Op, shapes: Iterable[Shape]) -> Iterator[Shape]:
    """Yield the shapes with the orders and multiples of dimensions that the op always has."""
    return (_keep_multiples(op, keep_orders(op, s)) for s in shapes)


def _keep_multiples(op: operators.Op, shape: Shape) -> Shape:
    """Return the shape with dimensions made longer, where they always are multiples of others.

    Heads of queries are, say, of those of keys. A few shapes with this are no chance.
    """
    longer = [*shape]
    for i, j in _multiples(tuple(_shapes_of_rank(op))):
        longer[i] = math.ceil(shape[i] / shape[j]) * shape[j]
    return tuple(longer)


@functools.lru_cache
def _multiples(shapes: tuple[Shape, ...]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of dimensions of which the first is always a multiple of the second."""

    def is_multiple(i: int, j: int) -> bool:
        several = [s for s in shapes if s[j] > 1]
        return len(several) >= _FEW_SHAPES and all(s[i] % s[j] == 0 for s in several)

    dims = range(len(shapes[0]) if shapes else 0)
    return tuple((i, j) for i, j in itertools.permutations(dims, 2) if is_multiple(i, j))


def _unique(shapes: Iterable[Shape]) -> Iterator[Shape]:
    """Yield each shape once, as soon as it comes: a draw of all of them takes 0.1 s."""
    have: set[Shape] = set()
    for shape in shapes:
        if shape not in have:
            have.add(shape)
            yield shape


class OfferedCases:
    """Cases of many shapes, in any dtype, layout and with any scalars."""

    def __init__(
        self,
        op: operators.Op,
        dtypes: Sequence[str],
        numbers: Sequence[int],
        specials: Sequence[str],
        seed: int,
        *,
        is_interpreted: bool,
        thresholds: Iterable[float] = (),
    ) -> None:
        """List the lengths of each dimension.

        Args:
            op, seed: of the plan.
            dtypes: that the device can run.
            numbers: integers of the version's source.
            specials: special values that make several inputs one tensor.
            is_interpreted: an interpreter runs the kernels, on the CPU.
            thresholds: the numbers of the source that something is compared with.
        """
        self._op, self._dtypes, self._specials = op, dtypes, specials
        self._draw = random.Random(f"{seed} launches")  # noqa: S311 (replayed from the seed)
        self._is_interpreted = is_interpreted
        self._rank = len(operators.smallest_shape(op))
        self._own = _shapes_of_rank(op)
        self._known_tensors: dict[Shape, dict[str, Shape]] = {}
        self._numbers = [n for n in numbers if n >= _SMALLEST_LIMIT]
        compared = set(thresholds)
        self._compared = [n for n in self._numbers if n in compared] or self._numbers
        self._lengths = [self._lengths_of(dim) for dim in range(self._rank)]
        self._scalars = [
            tuple(zip(op.scalars, values, strict=True))
            for values in itertools.product(*op.scalars.values())
        ]

    def _lengths_of(self, dim: int) -> list[int]:
        """Return lengths of a dimension, on all scales that the op declares.

        They are powers of two, one more and half as long again, the declared ones, the numbers of
        the source and one more, and the sums of two of them: `k >= 512`, in whole blocks of 32.
        """
        declared = declared_lengths(self._op)[dim]
        step, most = math.gcd(*declared), max(declared)
        powers = [2**k for k in range(most.bit_length())]
        near = [n + more for n in (*powers, *self._numbers) for more in (0, 1, n // 2)]
        limits = sorted({n for n in self._numbers if n >= _SMALLEST_ADDED}, reverse=True)
        near += map(sum, itertools.combinations(limits[:_MOST_ADDED], 2))
        whole = {max(n // step, 1) * step for n in near}
        return sorted({n for n in whole if min(declared) <= n <= most} | declared)

    def draw(self) -> list[Case]:
        """Return cases in which one dimension has each length, and others, in random order."""
        op = self._op
        base = min(self._own, key=lambda s: (1 in s[-2:], math.prod(s)))
        least = tuple(lengths[0] for lengths in self._lengths)
        shapes = [
            (*start[:dim], n, *start[dim + 1 :])
            for dim, lengths in enumerate(self._lengths)
            for n in lengths
            for start in (base, least)
        ]
        drawn = (self._draw_shape(turn) for turn in range(MAX_TRIES))
        usable = filter(self._is_cheap, _unique(_usable(op, (*shapes, *drawn))))
        cheap = [*itertools.islice(usable, len(shapes) + N_DRAWN)]
        cases = [self._case(shape, turn) for turn, shape in enumerate(cheap)]
        for turn, shape in enumerate(self._shapes_of_equals(cheap) if self._specials else ()):
            special = self._specials[turn % len(self._specials)]
            cases.append(self._case(shape, turn).evolve(special=special, layouts=()))
        self._draw.shuffle(cases)
        return cases[:MAX_OFFERED]

    def _draw_shape(self, turn: int) -> Shape:
        """Return a shape of drawn lengths; every second one is at a number of the source.

        A product of some of its dimensions is that number or just over it, or one dimension is so
        many times another. Half of these numbers are compared with something; half of the products
        are of neighboring dimensions: rows, say, or elements of a head.
        """
        shape = [*map(self._draw.choice, self._lengths)]
        if turn % 2 == 0 or not self._numbers:
            return tuple(shape)
        number = self._draw.choice(self._compared if turn % 4 == 1 else self._numbers)
        first, *others = self._draw_dims(self._draw.randint(1, self._rank))
        for dim in others:
            small = [n for n in self._lengths[dim] if n <= number]
            shape[dim] = self._draw.choice(small or self._lengths[dim])
        of_others = math.prod(shape[dim] for dim in others)
        least = math.ceil(number / of_others)
        shape[first] = self._draw.choice((least, least + 1, number * of_others))
        within = self._lengths[first]
        shape[first] = min(max(shape[first], within[0]), within[-1])
        return tuple(shape)

    def _draw_dims(self, n: int) -> list[int]:
        """Return n dimensions in random order; those of every second draw are the first or last."""
        if self._draw.random() < 0.5:
            return self._draw.sample(range(self._rank), n)
        start = self._draw.choice((0, self._rank - n))
        return self._draw.sample(range(start, start + n), n)

    def _shapes_of_equals(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Return shapes in which all dimensions, or the last two, are the shorter one of these."""
        first = self._rank - 2
        ends = ((*s[:first], *(min(s[first:]),) * len(s[first:])) for s in shapes if first >= 0)
        whole = ((min(s[-2:]),) * self._rank for s in shapes)
        return [s for s in dict.fromkeys((*whole, *ends)) if self._is_cheap(s)]

    def _is_cheap(self, shape: Shape) -> bool:
        """Return whether the device computes this shape quickly."""
        if not self._is_interpreted:
            return _is_moderate(self._op, shape)
        if interpreter_ms(self._op, shape) > MAX_MS:
            return False
        return max(map(math.prod, self._tensors(shape).values()), default=0) <= MAX_ELEMENTS

    def _case(self, shape: Shape, turn: int) -> Case:
        """Return a case with the next dtype and scalars; every second one has layouts."""
        case = Case(
            shape=shape,
            dtype=self._dtypes[turn % len(self._dtypes)],
            shape_class=BESIDE,
            scalars=self._scalars[turn % len(self._scalars)],
            seed=self._draw.getrandbits(31),
        )
        return case.evolve(layouts=self._draw_layouts(shape)) if turn % 2 else case

    def _draw_layouts(self, shape: Shape) -> tuple[tuple[str, str], ...]:
        """Return a layout for about half of the tensors.

        None repeats values: many equal ones add up to infinity in float16.
        """
        chosen = []
        for name, sizes in self._tensors(shape).items():
            if self._draw.random() < 0.5:
                names = self._draw.sample(self._layouts, len(self._layouts))
                own = next((layout for layout in names if layouts.place(sizes, layout)), None)
                chosen += [(name, own)] if own else []
        return tuple(chosen)

    @cached_property
    def _layouts(self) -> list[str]:
        """Return the layouts of the op that differ from the contiguous one and repeat no values."""
        return [
            layout
            for layout in layouts.LAYOUTS
            if layout in self._op.layouts
            and layout != CONTIGUOUS
            and not layouts.repeats_values(layout)
        ]

    def _tensors(self, shape: Shape) -> dict[str, Shape]:
        """Return the shape of each tensor, by name; none where the op refuses it."""
        if shape not in self._known_tensors:
            try:
                inputs = operators.inputs_without_memory(self._op, shape, self._op.dtypes[0])
            except Exception:  # noqa: BLE001 (the op's own: 33 heads may not be shared by 2)
                inputs = ()
            named = zip(self._op.input_names(len(inputs)), inputs, strict=True)
            self._known_tensors[shape] = {
                name: tuple(x.shape) for name, x in named if isinstance(x, torch.Tensor)
            }
        return self._known_tensors[shape]


__all__ = [
    "MAX_MS", "OfferedCases", "count_results", "declared_lengths", "interpreter_ms", "neighbors",
]  # fmt: skip
