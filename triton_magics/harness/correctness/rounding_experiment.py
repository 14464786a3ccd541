"""Find out by two calls whether an error is one of rounding.

A rounding error follows the last bits of what is rounded: when the inputs change by a
hundredth, it is another one. The error of a formula follows the inputs themselves, so it hardly
changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from triton_magics.harness import layouts
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import CallOptions, VersionRaised
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.special_values import SHARED_VALUES
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import Case, Cause, CauseCode

MOVE = 2.0**-6  # relative; some times the spacing of bfloat16
LEAST_ERROR = 2.0**-17  # of the output's size; those of TF32 are larger, those of float32 smaller
LARGEST_ERROR = 2.0**-6  # of the output's size; those of bfloat16 are smaller
MOST_ALIKE = 0.8  # correlation of the errors of two calls; that of a formula is above 0.99
LEAST_ALIKE = 0.97  # of the errors of a formula
RATIO = 3.0  # of their sizes
LEAST_RANDOM = 0.3  # of the errors, beside a common factor
ENOUGH = 64  # elements; the correlation of that many random errors is below 0.4
FEW = 16  # of them, the errors of a formula are still told apart
MOST = 20_000
ROWS = 300  # a program of a row takes the interpreter a millisecond


def find_rounding(subject: Subject, case: Case) -> Cause | None:
    """Return a lower precision as the cause of a wrong output in float32; None if it is another.

    Args:
        subject: the version, with the same outputs for the same inputs.
        case: a wrong one; the errors of one of the op's larger shapes are compared.

    Raises:
        VersionRaised: the version raised.
    """
    alike = _alike_errors(subject, case)
    if alike is None or alike > MOST_ALIKE:
        return None
    return Cause(code=CauseCode.LOWER_PRECISION, dtype="an intermediate value is rounded")


def has_errors_of_formula(subject: Subject, case: Case) -> bool:
    """Return whether small errors stay when the inputs change by a hundredth.

    Raises:
        VersionRaised: the version raised.
    """
    alike = _alike_errors(subject, case)
    return alike is not None and alike > LEAST_ALIKE


@dataclass(frozen=True)
class ErrorsChange:
    """The prediction that the errors of a case are others once its inputs change by a hundredth.

    Those of a lower precision are, also in a half type and with values that show it. Those of a
    formula stay, as of a limit that depends on the dtype.
    """

    case: Case

    def is_right(self, subject: Subject) -> bool:
        """Return whether they are, or can't be compared."""
        if self.case.special in SHARED_VALUES:  # its inputs can't be changed one by one
            return True
        inputs = subject.make_inputs(self.case)
        try:
            alike = _alike(subject, inputs, _OF_ANY_SIZE)
        except VersionRaised:
            return True
        return alike is None or alike <= LEAST_ALIKE


def _alike_errors(subject: Subject, case: Case) -> float | None:
    """Return the correlation of the errors of two calls; None where they can't be compared."""
    if case.dtype != "float32" or not case.has_plain_values:
        return None
    fitting = (s for s in subject.op.shapes if math.prod(s) <= MOST and math.prod(s[:-1]) <= ROWS)
    shape = max(fitting, key=math.prod, default=case.shape)
    inputs = subject.make_inputs(case.evolve(shape=shape, size=None, extent="", layouts=()))
    return _alike(subject, inputs)


class _Range(NamedTuple):
    """The sizes of errors that are compared, of the output's size; with a common factor or not.

    Attributes:
        enough: elements of the output.
    """

    least: float = LEAST_ERROR
    largest: float = LARGEST_ERROR
    with_factor: bool = False
    enough: int = ENOUGH


_OF_ANY_SIZE = _Range(0.0, math.inf, with_factor=True, enough=FEW)


def _alike(subject: Subject, inputs: CaseInputs, of: _Range = _Range()) -> float | None:  # noqa: B008
    """Return the correlation of errors within a range; None where they can't be compared."""
    both = (inputs.pristine, _move(inputs))
    pair = [_errors(subject, inputs, values, of) for values in both]
    if any(errors is None for errors in pair):
        return None
    before, after = (errors for errors in pair if errors is not None)
    sizes = [float(errors.norm()) for errors in (before, after)]
    if not min(sizes) * RATIO >= max(sizes) > 0:
        return None
    return abs(float(before @ after)) / (sizes[0] * sizes[1])


def _move(inputs: CaseInputs) -> tuple[Any, ...]:
    """Return inputs that differ by up to a hundredth or two, each element by a share of its own."""
    draw = torch.Generator().manual_seed(1)

    def move(x: Any) -> Any:
        if not is_floating(x):
            return x
        share = (torch.rand(x.shape, generator=draw) * 2 - 1) * MOVE
        return x * (1 + share.to(x.device))

    return tuple(map(move, inputs.pristine))


def _errors(
    subject: Subject, inputs: CaseInputs, values: tuple[Any, ...], of: _Range
) -> torch.Tensor | None:
    """Return the errors of the outputs without a common factor, float64 [n].

    None where they are not small, where there are too few, or where the factor is most of them.
    """
    for argument, value in zip(inputs.arguments, values, strict=True):
        if isinstance(argument, torch.Tensor):
            layouts.write(argument, value)
    exact = oracle.evaluate(subject.op, oracle.upcast(values))[1]
    call = subject.call(inputs.arguments, exact, options=CallOptions(guard=True), inputs=inputs)
    if any(got.shape != value.shape for got, value in zip(call.outputs, exact, strict=True)):
        return None
    right = torch.cat([value.double().flatten() for value in exact])
    errors = torch.cat([got.double().flatten() for got in call.outputs]) - right
    size = float(errors.norm() / right.norm())
    is_usable = len(errors) >= of.enough and bool(errors.isfinite().all())
    if not is_usable or not of.least <= size <= of.largest:
        return None
    if of.with_factor:
        return errors
    # To round towards 0 makes everything smaller; the same factor is no evidence.
    random = errors - (errors @ right) / (right @ right) * right
    return random if bool(random.norm() >= LEAST_RANDOM * errors.norm()) else None
