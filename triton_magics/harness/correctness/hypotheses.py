"""Confirm a cause by calls that were not used to find it.

A cause predicts where its fault can't show: a wrong stride not in contiguous inputs, a wrong index
not in a tensor of one value, a missing mask not in whole blocks, a wrong formula nowhere. There the
version has to be right on values that were not looked at, and wrong as before without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Trial:
    """A call of the version on a case.

    Attributes:
        case: of the inputs.
        constant: names of the inputs of which every element is one value.
    """

    case: Case
    constant: tuple[str, ...] = ()

    def is_right(self, subject: Subject) -> bool:
        """Return whether the version is right; not if it raises."""
        values = None
        if self.constant:
            values = make_constant(subject, subject.make_inputs(self.case).pristine, self.constant)
        try:
            return passes(subject, self.case, values)
        except (VersionRaised, UserFault):
            return False


@dataclass(frozen=True)
class Hypothesis:
    """A cause with the calls that it predicts.

    Attributes:
        cause: of the fault.
        right: calls of which the output is right.
        wrong: calls of which it is wrong.
    """

    cause: Cause
    right: tuple[Trial, ...] = ()
    wrong: tuple[Trial, ...] = ()

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


def _one_value(x: torch.Tensor, which: int) -> torch.Tensor:
    if not is_floating(x):
        return torch.full_like(x, int(x.min() if which else x.max()))
    wide = x.double()
    size = float(wide.square().mean().sqrt()) or 1.0
    value = _SIZES[which] * size
    if which and bool((wide < 0).any()):
        value = -value
    return torch.full_like(wide, value).to(x.dtype)
