"""Shapes that tell whether a fault depends on blocks: whole blocks, and several of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from triton_magics import operators
from triton_magics.harness.correctness.skip_rules import count_programs
from triton_magics.harness.correctness.subject import Subject
from triton_magics.model import Case

Shape = tuple[int, ...]

SMALLEST, LARGEST = 8, 100_000  # elements of the shapes that are tried
MAX_PROGRAMS = 64  # in the interpreter, about a millisecond each
LEAST_BLOCKS = (1, 64, 1024)
SEVERAL = (
    ((512, 256, 128), (128, 128, 256)),
    ((256, 128),),
    ((16, 2048),),
    ((4, 4096),),
    ((16_384,),),
)
"""Several blocks in the last dimensions, from tiles to single long rows.

Of a product two shapes: the first dimension is the longest one, or the last. So an index of each
one fits into another.
"""


def is_fitting(op: operators.Op, shape: Shape) -> bool:
    """Return whether a shape is small, but no single number.

    Its last dimension is at most twice as long as that of the op's own shapes. Attention holds a
    whole head in registers: with 1,024 elements a GPU's compiler takes more than a minute.
    """
    every = (*op.shapes, *op.sizes.values(), *(op.extents or {}).values())
    longest = max(own[-1] for own in every if own)
    is_usual = not shape or shape[-1] <= 2 << (longest - 1).bit_length()
    is_small = operators.largest_input(op, shape) <= LARGEST
    return math.prod(shape) >= SMALLEST and is_small and is_usual


def is_affordable(subject: Subject, case: Case) -> bool:
    """Return whether a call runs few programs, if it runs in an interpreter."""
    return not subject.is_interpreted or count_programs(subject, case) <= MAX_PROGRAMS


def list_whole(op: operators.Op, shape: Shape) -> list[Shape]:
    """Return shapes of whole blocks that resemble a shape, the smallest first."""
    shapes = (s for s in dict.fromkeys(iter_whole(shape)) if s != shape)
    return [s for s in shapes if is_fitting(op, s)]


def iter_whole(shape: Shape) -> Iterator[Shape]:
    """Yield shapes of whole blocks: powers of two that are no two alike, so that none is a chance.

    Dimensions of 1 stay, but for the last two.
    """
    for least in LEAST_BLOCKS:
        for wide in (2, 1):
            whole: list[int] = []
            for n in reversed(shape):
                power = 1 << (n - 1).bit_length()
                power = max(power, least) if len(whole) < wide else power
                while power > 1 and power in whole:
                    power *= 2
                whole.append(power)
            yield tuple(reversed(whole))


def list_several_blocks(subject: Subject, case: Case) -> list[Case]:
    """Return cases of several whole blocks in each of the last dimensions; none if all are large.

    How long a block is, and of how many dimensions, is not known. So they are the first ones that
    few programs compute.
    """
    for group in SEVERAL:
        cases = [c for last in group if (c := _with_last(subject, case, last)) is not None]
        if len(cases) == len(group):
            return cases
    return []


def _with_last(subject: Subject, case: Case, last: Shape) -> Case | None:
    """Return the case with other last dimensions, and one or two in the others."""
    leading = case.shape[: len(case.shape) - len(last)]
    for few in (2, 1) if len(last) <= len(case.shape) else ():
        shape = (*(few if n > 1 else 1 for n in leading), *last)
        several = case.evolve(shape=shape, size=None, extent="")
        if is_fitting(subject.op, shape) and is_affordable(subject, several):
            return several
    return None
