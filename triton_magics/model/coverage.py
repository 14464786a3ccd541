"""The part of an op that a validation checked."""

from __future__ import annotations

from typing import Literal

from triton_magics.model.base import Value

PlanName = Literal["full", "quick", "thorough"]


class LeftOut(Value):
    """Something that a plan does not have, or that a device did not run, and why.

    `item` names it, or an example where `n` is more than one.
    """

    item: str
    reason: str
    n: int = 1


class PlanScope(Value):
    """The combinations of values that the cases of a plan have.

    Attributes:
        strength: 2 for pairs of values, 3 for triples.
        n_possible: combinations that a case can have.
        n_covered: those that a case of the plan has; in a verdict, that a case that ran had.
        impossible: combinations that no case can have.
        extents: extreme shapes that the plan does not have.
    """

    strength: int = 2
    n_possible: int = 0
    n_covered: int = 0
    impossible: tuple[LeftOut, ...] = ()
    extents: tuple[LeftOut, ...] = ()


class Coverage(Value):
    """Part of an op's cases that a validation was made of.

    Attributes:
        plan: `full`, `quick` with fewer cases, or `thorough` with more.
        dtypes: those that were checked.
        declared: those that the op declares; None where the record does not have them.
        shapes: the only shapes that were checked; empty for those of the plan.
        inputs: the file with the only inputs that were checked; empty for those of the plan.
        only: words that the labels of the checked cases have; empty for all cases of the plan.
        conclusive: False where the verdict rests on a loosened tolerance, or on cases that can't
            detect a lower precision.
        scope: combinations of values that were checked; None where the record does not have it.
        not_run: cases that the device did not run, by reason.
    """

    plan: PlanName = "full"
    dtypes: tuple[str, ...] = ()
    declared: tuple[str, ...] | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    inputs: str = ""
    only: str = ""
    conclusive: bool = True
    scope: PlanScope | None = None
    not_run: tuple[LeftOut, ...] = ()

    @property
    def is_spot_check(self) -> bool:
        """True for named shapes, cases or own inputs: they can fail a version, but not pass it."""
        return bool(self.shapes or self.inputs or self.only)

    @property
    def has_every_case(self) -> bool:
        """True for every case of the full or the thorough plan, in every declared dtype."""
        return self.plan != "quick" and not self.is_spot_check and not self.missing_dtypes

    @property
    def is_full(self) -> bool:
        """True for every case of the full plan, with evidence in every declared dtype."""
        return self.has_every_case and self.conclusive

    @property
    def missing_dtypes(self) -> tuple[str, ...]:
        """Declared dtypes that were not checked."""
        return tuple(d for d in self.declared or () if d not in self.dtypes)
