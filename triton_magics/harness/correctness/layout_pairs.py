"""Widen the layouts that a failure needs to how two tensors lie to each other.

A kernel that reads two tensors at the strides of one is wrong for each pair of different layouts.
One that takes equal strides for no gaps is wrong for many pairs of equal layouts. Each pair alone
explains few of the failed cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from triton_magics.harness.correctness.needed_values import (
    Field,
    Needed,
    NeededValue,
    Passes,
    UnlikeLayouts,
)
from triton_magics.model import CONTIGUOUS, EVERY_INPUT, Case

MAX_PAIRS = 3  # of layouts that are tried in place of the needed ones


@dataclass(frozen=True)
class LayoutPair:
    """Two tensors that have to lie alike, or unlike, in memory for a failure.

    Attributes:
        one, other: their names.
        is_alike: they have the same layout, which is not contiguous; else different ones.
    """

    one: str
    other: str
    is_alike: bool

    @property
    def text(self) -> str:
        """Return it for readers: `k and v in different layouts`."""
        how = "the same layout, not contiguous" if self.is_alike else "different layouts"
        return f"{self.one} and {self.other} in {how}"

    def is_of(self, case: Case) -> bool:
        """Return whether the tensors of a case lie so."""
        one, other = case.layout_of(self.one), case.layout_of(self.other)
        return one == other != CONTIGUOUS if self.is_alike else one != other

    def leave_out(self, case: Case) -> Case:
        """Return the case with both tensors contiguous."""
        own = (self.one, self.other, EVERY_INPUT)
        return case.evolve(layouts=tuple(each for each in case.layouts if each[0] not in own))

    def layouts_of(self, case: Case) -> tuple[tuple[str, str], ...]:
        """Return the layouts of the two tensors in a case."""
        return tuple(each for each in case.layouts if each[0] in (self.one, self.other))


def widen_layouts(
    needed: tuple[Needed, ...], case: Case, failed: Sequence[Case], passes: Passes
) -> tuple[Needed | LayoutPair, ...]:
    """Return how two tensors lie in place of their needed layouts, if other layouts are wrong, too.

    The layouts of other failed cases are put into the case, and left out of these.

    Args:
        needed: by the case.
        case: a wrong one with nothing else.
        failed: cases whose layouts are tried.
        passes: runs a case.
    """
    for pair, used in _pairs_of(needed):
        has = [each for each in failed if pair.is_of(each)]
        own = pair.layouts_of(case)
        others = {
            pair.layouts_of(each): each for each in has if pair.layouts_of(each) not in ((), own)
        }
        alike = [layouts for layouts, each in others.items() if each.shape == case.shape]
        put_in = [passes(case.evolve(layouts=layouts)) for layouts in alike[:MAX_PAIRS]]
        without = [passes(pair.leave_out(each)) for each in [*others.values()][:MAX_PAIRS]]
        is_wider = False in put_in or True in without
        if is_wider and True not in put_in and False not in without:
            return (pair, *(each for each in needed if each not in used))
    return needed


def _pairs_of(needed: Sequence[Needed]) -> list[tuple[LayoutPair, tuple[Needed, ...]]]:
    """Return the pairs of tensors that needed layouts may stand for, each with these layouts."""
    values = [each for each in needed if isinstance(each, NeededValue)]
    layouts = [each for each in values if each.wrong[0].field is Field.LAYOUT]
    pairs: list[tuple[LayoutPair, tuple[Needed, ...]]] = [
        (LayoutPair(each.one, each.other, is_alike=False), (each, *layouts))
        for each in needed
        if isinstance(each, UnlikeLayouts)
    ]
    for one, other in itertools.combinations(layouts, 2):
        if one.wrong[0].value == other.wrong[0].value:
            names = one.wrong[0].name, other.wrong[0].name
            pairs.append((LayoutPair(*names, is_alike=True), (one, other)))
    return pairs


__all__ = ["LayoutPair", "widen_layouts"]
