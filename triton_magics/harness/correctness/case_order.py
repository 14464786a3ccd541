"""The order of a plan's cases, for a budget that may end early."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

from triton_magics import operators
from triton_magics.harness.correctness.shape_classes import interpreter_cost
from triton_magics.model import Case

FIRST_CASES, EVERY = 12, 3  # that come before others of the same plan; between two of these


def alternate(first: Sequence[Case], others: Sequence[Case]) -> tuple[list[Case], list[Case]]:
    """Return the first cases with one of the others after each, and the rest of the others."""
    pairs = itertools.zip_longest(first, others[: len(first)])
    mixed = [case for pair in pairs for case in pair if case is not None]
    return mixed, [*others[len(first) :]]


def spread(cases: Sequence[Case], others: Sequence[Case]) -> list[Case]:
    """Return the cases with one of the others after every third one, but for the first dozen."""
    mixed, waiting = [*cases[:FIRST_CASES]], iter(others)
    for i, case in enumerate(cases[FIRST_CASES:]):
        mixed += itertools.islice(waiting, 1) if i % EVERY == 0 else ()
        mixed.append(case)
    return [*mixed, *waiting]


def put_specials_first(op: operators.Op, cases: Sequence[Case]) -> list[Case]:
    """Return the cases in an order that begins with a cheap one of each special value.

    That has several rows and columns, if there is such a case: with one row a structure that
    differs by rows is there only in part.
    """
    of_special: dict[str, list[int]] = defaultdict(list)
    for i, case in enumerate(cases):
        of_special[case.special].append(i)

    def cost(i: int) -> tuple[bool, int]:
        return 1 in cases[i].shape[-2:], interpreter_cost(op, cases[i].shape)

    first = [min(own, key=cost) for own in of_special.values()]
    return [cases[i] for i in dict.fromkeys([*first, *range(len(cases))])]
