"""Further calls of a version that is wrong, to tell the causes of its fault apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from triton_magics.harness import layouts
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import CallOptions, CallRecord
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.comparison import CaseOracle, compare_outputs
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import Case, CaseStatus

SMALLER = 16.0  # a power of two: but for the smallest numbers nothing is rounded


def call_guarded(subject: Subject, inputs: CaseInputs, like: tuple[Any, ...]) -> CallRecord:
    """Call the version, which is wrong, with its memory between guard bands.

    Raises:
        VersionRaised: it raised.
    """
    return subject.call(inputs.arguments, like, options=CallOptions(guard=True), inputs=inputs)


def write_values(inputs: CaseInputs, values: tuple[Any, ...]) -> CaseInputs:
    """Return the inputs with these values, which their memory gets too."""
    for argument, value in zip(inputs.arguments, values, strict=True):
        if isinstance(argument, torch.Tensor):
            layouts.write(argument, value)
    return replace(inputs, pristine=values)


def passes(subject: Subject, case: Case, values: tuple[Any, ...] | None = None) -> bool:
    """Return whether the version is right on another case, or on these values in its layouts.

    Raises:
        VersionRaised: it raised.
    """
    inputs = subject.make_inputs(case)
    return _is_right(subject, case, inputs if values is None else write_values(inputs, values))


def passes_apart(subject: Subject, case: Case) -> bool:
    """Return whether the version is right with the same strides in memory of each input's own.

    Raises:
        VersionRaised: it raised.
    """
    return _is_right(subject, case, subject.make_inputs_apart(case))


def passes_without_gaps(subject: Subject, case: Case) -> bool:
    """Return whether the version is right where 0 stands around the elements of its inputs.

    False where nothing lies between the elements of any.

    Raises:
        VersionRaised: it raised.
    """
    inputs = subject.make_inputs(case)
    if all(guard.with_gaps is None for guard in inputs.guards):
        return False
    for guard in inputs.guards:
        if guard.with_gaps is not None:
            guard.buffer.zero_()
    others = tuple(guard for guard in inputs.guards if guard.with_gaps is None)
    return _is_right(subject, case, write_values(replace(inputs, guards=others), inputs.pristine))


def stays_finite(subject: Subject, case: Case) -> bool:
    """Return whether smaller values of all inputs give numbers where the reference gives them.

    Raises:
        VersionRaised: the version raised.
    """
    inputs = subject.make_inputs(case)
    values = tuple(
        (x.double() / SMALLER).to(x.dtype) if is_floating(x) else x for x in inputs.pristine
    )
    expected = oracle.compute_torch_outputs(subject.op, values).outputs
    call = call_guarded(subject, write_values(inputs, values), expected)
    return not any(
        bool((have.isfinite() < want.isfinite()).any())
        for have, want in zip(call.outputs, expected, strict=True)
    )


def _is_right(subject: Subject, case: Case, inputs: CaseInputs) -> bool:
    torch_outputs = oracle.compute_torch_outputs(subject.op, inputs.pristine)
    call = call_guarded(subject, inputs, torch_outputs.outputs)
    result = compare_outputs(CaseOracle(subject, case, inputs, torch_outputs), call)
    return result.status is CaseStatus.PASSED
