"""Further shapes of a class for the cases of a product, whose kernels branch on several extents.

A class of a covering array has one shape. Of a product the others of the class differ in more than
size: narrow and wide heads, one tile and several. So its cases take turns with them, until each of
its shapes has met each dtype with each value of the scalars.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch

from triton_magics import operators
from triton_magics.harness.correctness.call_record import outputs_of
from triton_magics.harness.correctness.case_inputs import is_bitwise_equal, make_pristine
from triton_magics.harness.correctness.shape_classes import (
    OVER_8_TILES,
    PRODUCT_RANK,
    Shape,
    classify,
    cut_shape,
    extents,
    interpreter_cost,
)
from triton_magics.model import Case, Scalar

MOST_IN_A_BLOCK, N_LONG = 128, 3  # columns or rows; shapes
FAR = 16  # times as long
MOST_COLUMNS = 1024  # a kernel with a row in a block takes few such rows in one
MAX_STEP = 130  # blocks of a step of a walk; an interpreter takes 1 ms for one
_META = torch.device("meta")
_CPU = torch.device("cpu")
MAX_BLOCKS = 32  # of a shape that is taken as declared; a larger one is cut

Fits = Callable[[Case, Shape], bool]
_defined_shapes: WeakKeyDictionary[Callable[..., object], dict[Shape, bool]] = WeakKeyDictionary()


def list_variants(op: operators.Op) -> Mapping[str, Sequence[Shape]]:
    """Return the shapes of each class of a product that has several; of other ops none."""
    if op.op_class != "matmul":
        return {}
    rank = len(operators.smallest_shape(op))
    variants: dict[str, list[Shape]] = defaultdict(list)
    for shape in op.shapes:
        small = interpreter_cost(op, shape) <= MAX_BLOCKS
        variants[classify(shape, rank)].append(shape if small else cut_shape(shape))
    return {name: own for name, own in variants.items() if len(own) > 1}


def shapes_of_several_blocks(op: operators.Op, *, is_interpreted: bool) -> list[Shape]:
    """Return the cheapest declared shapes that most kernels take in several blocks.

    The shapes of a covering array are small: most kernels take them in one block. Of attention, one
    more has an uneven number of tiles.
    """
    long = [s for s in op.shapes if max(s[-2:], default=1) > MOST_IN_A_BLOCK]
    # A product of one row comes last: it has one row of results, and a loss one target.
    long.sort(key=lambda s: (len(s) == 3 and s[0] == 1, interpreter_cost(op, s)))
    tiles = extents(op).get(OVER_8_TILES)
    return long[: 1 if is_interpreted else N_LONG] + ([tiles] if tiles else [])


def walk_of_dimensions(op: operators.Op) -> list[Shape]:
    """Return shapes to call one after the other: a small one, then one long dimension and it again.

    A version that keeps memory between calls may then find in it what a longer call left. Lengths
    are those of the op's shapes. At the end one of the last two dimensions is a whole number of
    blocks long, then a little longer, then half as long again, then long, shorter, and shorter yet:
    a version may keep what it has computed for similar lengths. The rows of a product have the
    first three. An op without a shape of several rows and columns has no walk.
    """
    rank = len(operators.smallest_shape(op))
    own = [s for s in op.shapes if len(s) == rank and 1 not in s[-2:]]
    if not own:
        return []
    base = min(own, key=math.prod)
    walk = [base]
    for dim in reversed(range(rank)):
        longer = {s[dim] for s in op.shapes if len(s) == rank and s[dim] > base[dim]}
        longest_first = sorted(longer, reverse=True)
        shapes = [keep_orders(op, (*base[:dim], n, *base[dim + 1 :])) for n in longest_first]
        cheap = (s for s in shapes if interpreter_cost(op, s) <= MAX_STEP and is_defined(op, s))
        walk += [step for shape in itertools.islice(cheap, 1) for step in (shape, base)]
    return walk + _end_of_walk(op, base)


def _end_of_walk(op: operators.Op, base: Shape) -> list[Shape]:
    """Return shapes of similar lengths in one of the last two dimensions, or three of a product."""
    rank = len(base)
    n_dims = 1 if op.op_class == "elementwise" else 2
    long = max((s[-1] for s in op.shapes if s[-1] <= MOST_COLUMNS), default=base[-1])
    wide = base if op.op_class == "matmul" else (*base[:-1], long)  # few of its rows are a block
    starts = {rank - 1: base, rank - 2: wide}
    end = [
        shape
        for dim in reversed(range(rank)[-n_dims:])
        for lengths in (_SIMILAR, _SHORTER)
        for shape in _shapes_of_lengths(op, starts[dim], dim, lengths)
    ]
    is_product = op.op_class == "matmul" and rank == PRODUCT_RANK
    return end + (_shapes_of_lengths(op, base, 0, _SIMILAR_ROWS) if is_product else [])


class _Lengths(NamedTuple):
    """Lengths of a dimension to call one after the other.

    Attributes:
        blocks: powers of two, the longest first: the first one that is cheap enough is taken.
        near: (block, step of the dimension) -> the lengths.
        most: blocks of a shape; see `interpreter_cost`.
    """

    blocks: tuple[int, ...]
    near: Callable[[int, int], tuple[int, ...]]
    most: int


_SIMILAR = _Lengths(
    (512, 256, 128, 64, 32), lambda block, step: (block, block + step, block * 3 // 2 - step), 48
)
# Of a product: a model changes the number of rows, and one power of two holds the last two.
_SIMILAR_ROWS = _Lengths(
    (512, 256, 128, 64, 32), lambda block, step: (block, block + step, 2 * block - step), 48
)
# Of most lengths of a block the shorter ones have fewer, and the same power of two holds them. If
# the work is split into as many parts for all of them, the last one has an empty part.
_SHORTER = _Lengths(
    (4096, 2048, 1024, 512, 256),
    lambda block, step: (block, block * 5 // 8 + step, block // 2 + step),
    MAX_STEP,
)


def _shapes_of_lengths(op: operators.Op, base: Shape, dim: int, lengths: _Lengths) -> list[Shape]:
    """Return shapes with these lengths in a dimension.

    All are within the lengths that the op declares, and multiples of what these are.
    """
    declared = {s[dim] for s in (*op.shapes, *op.sizes.values()) if len(s) == len(base)}
    step, longest = math.gcd(*declared), max(declared)
    for block in lengths.blocks:
        near = dict.fromkeys(lengths.near(block, step))
        shapes = [keep_orders(op, (*base[:dim], n, *base[dim + 1 :])) for n in near]
        is_like_declared = max(near) <= longest and block % step == 0 and block > 2 * step
        if is_like_declared and all(interpreter_cost(op, s) <= lengths.most for s in shapes):
            return shapes if all(is_defined(op, s) for s in shapes) else []
    return []


def keep_orders(op: operators.Op, shape: Shape) -> Shape:
    """Return the shape with dimensions made longer, where the op always has them in an order.

    In all of its shapes and sizes the matrix is square, say, or no more is used than there is. An
    order of dimensions that are never equal, and far apart somewhere, is taken for chance.
    """
    longer = list(shape)
    orders = _orders(tuple(s for s in (*op.shapes, *op.sizes.values()) if len(s) == len(shape)))
    for _ in range(len(shape)):  # one may follow from another
        for i, j in orders:
            longer[j] = max(longer[j], longer[i])
    return tuple(longer)


@functools.lru_cache
def _orders(shapes: tuple[Shape, ...]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of dimensions of which the first is never longer than the second."""
    dims = range(len(shapes[0]) if shapes else 0)
    return tuple((i, j) for i, j in itertools.permutations(dims, 2) if _is_order(shapes, i, j))


def _is_order(shapes: Sequence[Shape], i: int, j: int) -> bool:
    """Return whether dimension i is never longer than j, and this is no chance."""
    is_near = all(s[j] <= FAR * s[i] for s in shapes) or any(s[i] == s[j] > 1 for s in shapes)
    return is_near and all(s[i] <= s[j] for s in shapes)


def is_defined(op: operators.Op, shape: Shape) -> bool:
    """Return whether the reference takes inputs of this shape, of which only meta tensors exist.

    It is asked once for each shape: on meta tensors, torch's attention takes 5 ms.
    """
    try:
        answers = _defined_shapes.setdefault(op.reference, {})
    except TypeError:  # a callable object without a hash or without weak references
        return _takes_shape(op, shape)
    if shape not in answers:
        answers[shape] = _takes_shape(op, shape)
    return answers[shape]


def _takes_shape(op: operators.Op, shape: Shape) -> bool:
    try:
        with torch.no_grad():
            op.reference(*operators.inputs_without_memory(op, shape, op.dtypes[0]))
    except Exception:  # noqa: BLE001 (the op's own code: 33 heads may not be shared by 2)
        return False
    return True


def is_refused(op: operators.Op, shape: Shape) -> bool:
    """Return whether the op takes its smallest shape without memory, but not this one.

    Of an op that reads what it draws nothing is known before there is memory.
    """
    return is_defined(op, operators.smallest_shape(op)) and not is_defined(op, shape)


def vary_shapes(
    cases: Iterable[Case], variants: Mapping[str, Sequence[Shape]], fits: Fits, seed: int
) -> list[Case]:
    """Return the cases with the shapes of their classes in turn, and those that were missing.

    Args:
        cases: of a covering array.
        variants: the shapes of each class.
        fits: whether a case can have a shape: its layouts and values exist there.
        seed: of the plan.
    """
    draw = random.Random(f"{seed} shapes")  # noqa: S311 (replayed from the seed)
    turns = {name: draw.sample(own, len(own)) for name, own in variants.items()}
    waiting: dict[object, list[Shape]] = {}
    varied = []
    for case in cases:
        left = waiting.setdefault(_form(case), [*turns.get(case.shape_class, ())])
        shape = next((s for s in left if fits(case, s)), None)
        if shape is not None:
            left.remove(shape)
        varied.append(case if shape is None else case.evolve(shape=shape))
    return varied + _missing_cases(varied, variants, fits, draw)


def plain_shape(op: operators.Op) -> Shape:
    """Return the smallest declared shape, one without a length of one if there is such a shape."""
    return min(op.shapes or (operators.smallest_shape(op),), key=lambda s: (1 in s, math.prod(s)))


def informative_scalars(op: operators.Op) -> dict[str, tuple[Scalar, ...]]:
    """Return the values of an op's scalars with which its output is more than one of its inputs.

    With a dropout of p = 0, or a factor of 0, a case says nothing about its shape or its layout.
    """
    return {
        name: tuple(v for v in values if not _gives_an_input(op, name, v)) or tuple(values)
        for name, values in op.scalars.items()
    }


def _gives_an_input(op: operators.Op, name: str, value: Scalar) -> bool:
    """Return whether the reference returns an input, with this value of a scalar."""
    case = Case(shape=plain_shape(op), dtype=op.dtypes[0], scalars=((name, value),), seed=1)
    try:
        inputs = make_pristine(op, case, _CPU)
        with torch.no_grad():
            outputs = outputs_of(op.reference(*inputs))
    except Exception:  # noqa: BLE001 (the op's own code, which may need a GPU)
        return False
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    return all(any(is_bitwise_equal(y, x) for x in tensors) for y in outputs)


def vary_scalars(op: operators.Op, cases: Iterable[Case], dtypes: Sequence[str]) -> list[Case]:
    """Return the cases of a product with each value of its scalars, which choose its masks.

    Their dtypes take turns. Of other ops each case has one of the values, and the dtype is kept:
    where a row is a block, a further dtype is another kernel.
    """
    scalars = informative_scalars(op)
    each = [tuple(zip(scalars, v, strict=True)) for v in itertools.product(*scalars.values())]
    if op.op_class != "matmul":
        return [c.evolve(scalars=each[i % len(each)]) for i, c in enumerate(cases)]
    turns = zip(cases, itertools.cycle(dtypes), strict=False)
    return [c.evolve(dtype=dtype, scalars=values) for c, dtype in turns for values in each]


def _form(case: Case) -> tuple[object, ...]:
    return case.shape_class, case.dtype, case.scalars


def _missing_cases(
    cases: Sequence[Case],
    variants: Mapping[str, Sequence[Shape]],
    fits: Fits,
    draw: random.Random,
) -> list[Case]:
    """Return a case for each shape that has not met a dtype or a scalar; the rest is another's."""
    have = {(c.shape, c.dtype, c.scalars) for c in cases}
    dtypes = dict.fromkeys(c.dtype for c in cases)
    scalars = dict.fromkeys(c.scalars for c in cases)
    missing = []
    for name, own in variants.items():
        of_class = [c for c in cases if c.shape_class == name]
        for shape, dtype, values in itertools.product(own, dtypes, scalars):
            models = [c for c in of_class if fits(c.evolve(dtype=dtype), shape)]
            if (shape, dtype, values) not in have and models:
                model = draw.choice(models)
                missing.append(model.evolve(shape=shape, dtype=dtype, scalars=values))
    return missing
