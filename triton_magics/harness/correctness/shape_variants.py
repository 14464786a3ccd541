"""Further shapes of a class for the cases of a product, whose kernels branch on several extents.

A class of a covering array has one shape. Of a product the others of the class differ in more than
size: narrow and wide heads, one tile and several. So its cases take turns with them, until each of
its shapes has met each dtype with each value of the scalars.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from triton_magics import operators
from triton_magics.harness.correctness.shape_classes import (
    Shape,
    classify,
    cut_shape,
    interpreter_cost,
)
from triton_magics.model import Case

MOST_IN_A_BLOCK, N_LONG = 128, 3  # columns or rows; shapes
MAX_BLOCKS = 32  # of a shape that is taken as declared; a larger one is cut

Fits = Callable[[Case, Shape], bool]


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

    The shapes of a covering array are small: most kernels take them in one block.
    """
    long = [s for s in op.shapes if max(s[-2:], default=1) > MOST_IN_A_BLOCK]
    long.sort(key=lambda shape: interpreter_cost(op, shape))
    return long[: 1 if is_interpreted else N_LONG]


def vary_shapes(
    cases: Iterable[Case], variants: Mapping[str, Sequence[Shape]], fits: Fits, seed: int
) -> list[Case]:
    """Return the cases with the shapes of their classes in turn, and those that were missing.

    Args:
        cases: of a covering array.
        variants: the shapes of each class.
        fits: whether a case can have a shape: its layouts and special values exist there.
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


def vary_scalars(op: operators.Op, cases: Iterable[Case], dtypes: Sequence[str]) -> list[Case]:
    """Return the cases of a product with each value of its scalars, which choose its masks.

    Their dtypes take turns. Of other ops each case has one of the values, and the dtype is kept:
    where a row is a block, a further dtype is another kernel.
    """
    names = tuple(op.scalars)
    each = [tuple(zip(names, v, strict=True)) for v in itertools.product(*op.scalars.values())]
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
            models = [c for c in of_class if fits(c, shape)]
            if (shape, dtype, values) not in have and models:
                model = draw.choice(models)
                missing.append(model.evolve(shape=shape, dtype=dtype, scalars=values))
    return missing
