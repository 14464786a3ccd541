"""Confirm a cause by calls that were not used to find it.

A cause predicts where its fault can't show: a wrong stride not in contiguous inputs, a wrong index
not in a tensor of one value, a missing mask not in whole blocks, a wrong formula nowhere. There the
version has to be right on values that were not looked at, and wrong as before without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.further_calls import passes
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, Cause

WHOLE_NUMBERS = (torch.int8, torch.uint8, torch.int32, torch.int64)
_FRESH = 101
_SIZES = (1.2345, 0.4321)  # of one value, by the size of the tensor's; no half type has them


class Prediction(Protocol):
    """An outcome of calls of the version."""

    def is_right(self, subject: Subject) -> bool:
        """Return whether the calls have it."""


@dataclass(frozen=True)
class Trial:
    """A call of the version on a case.

    Attributes:
        case: of the inputs.
        constant: names of the inputs of which every element is one value.
        equal: names of inputs, and a dimension in which each index has the values of the first.
    """

    case: Case
    constant: tuple[str, ...] = ()
    equal: tuple[tuple[str, ...], int] | None = None

    def is_right(self, subject: Subject) -> bool:
        """Return whether the version is right; not if it raises."""
        try:
            return passes(subject, self.case, self._values(subject))
        except (VersionRaised, UserFault):
            return False

    def _values(self, subject: Subject) -> tuple[Any, ...] | None:
        """Return the changed inputs; None if none is."""
        if not self.constant and not self.equal:
            return None
        inputs = subject.make_inputs(self.case).pristine
        if self.equal:
            return make_equal(subject, inputs, *self.equal)
        return make_constant(subject, inputs, self.constant)


@dataclass(frozen=True)
class AllRight:
    """The prediction that the version is right on each of several calls."""

    trials: tuple[Trial, ...]

    def is_right(self, subject: Subject) -> bool:
        """Return whether it comes true."""
        return all(trial.is_right(subject) for trial in self.trials)


@dataclass(frozen=True)
class Hypothesis:
    """A cause with the calls that it predicts.

    Attributes:
        cause: of the fault.
        right: calls of which the output is right, or another prediction that comes true.
        wrong: calls of which it is wrong.
    """

    cause: Cause
    right: tuple[Prediction, ...] = ()
    wrong: tuple[Prediction, ...] = ()

    def is_confirmed(self, subject: Subject) -> bool:
        """Return whether every prediction comes true."""
        return all(t.is_right(subject) for t in self.right) and not any(
            t.is_right(subject) for t in self.wrong
        )


def fresh(case: Case) -> Case:
    """Return a case with other values."""
    return case.evolve(seed=case.seed + _FRESH)


def vanishes(cause: Cause, case: Case, neutral: Callable[[Case], Case]) -> Hypothesis:
    """Return the hypothesis that a fault is gone in the neutral form of a case, and only there."""
    other = fresh(case)
    right = (Trial(neutral(case)), Trial(neutral(other)))
    return Hypothesis(cause, right=right, wrong=(Trial(other),))


def find_confirmed(subject: Subject, hypotheses: Iterable[Hypothesis]) -> Cause | None:
    """Return the cause that is confirmed; None where causes of two codes are."""
    causes: list[Cause] = []
    for each in hypotheses:
        if each.cause.code not in {c.code for c in causes} and each.is_confirmed(subject):
            causes.append(each.cause)
    return causes[0] if len(causes) == 1 else None


def make_constant(
    subject: Subject, inputs: tuple[Any, ...], names: Sequence[str], which: int = 0
) -> tuple[Any, ...]:
    """Return the inputs, of which those of these names have one value.

    Args:
        subject: the version, for the names.
        inputs: of its op.
        names: of tensors of numbers.
        which: of two values.
    """
    all_names = subject.op.input_names(len(inputs))
    pairs = zip(all_names, inputs, strict=True)
    return tuple(_one_value(x, which) if name in names else x for name, x in pairs)


def make_equal(
    subject: Subject, inputs: tuple[Any, ...], names: Sequence[str], dim: int
) -> tuple[Any, ...]:
    """Return the inputs, of which these have the values of index 0 at each index of a dimension."""
    all_names = subject.op.input_names(len(inputs))
    pairs = zip(all_names, inputs, strict=True)
    return tuple(_first_of(x, dim) if name in names else x for name, x in pairs)


def _first_of(x: torch.Tensor, dim: int) -> torch.Tensor:
    first = x.double().narrow(dim, 0, 1)
    return first.expand(x.shape).contiguous().to(x.dtype)


def _one_value(x: torch.Tensor, which: int) -> torch.Tensor:
    if not is_floating(x):
        return torch.full_like(x, int(x.min() if which else x.max()))
    wide = x.double()
    size = float(wide.square().mean().sqrt()) or 1.0
    value = _SIZES[which] * size
    if which and bool((wide < 0).any()):
        value = -value
    return torch.full_like(wide, value).to(x.dtype)
