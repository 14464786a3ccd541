"""Checks that call a version again: determinism, stale caches, who computes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from triton_magics.harness import layouts
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import CallRecord
from triton_magics.harness.correctness.case_inputs import (
    CaseInputs,
    is_bitwise_equal,
    make_pristine,
)
from triton_magics.harness.correctness.comparison import compare_outputs
from triton_magics.harness.correctness.computed_by import (
    check_launches,
    check_other_code,
    copy_outputs,
    equals_input,
)
from triton_magics.harness.correctness.output_checks import (
    check_form,
    check_reused_memory,
    check_unfinished_work,
    failed_case,
)
from triton_magics.harness.correctness.subject import Subject
from triton_magics.model import Case, CaseResult, CaseStatus, Cause, CauseCode

MAX_REPEAT_ELEMENTS = 300_000
REPEATS = 2
STALE = "the same tensors with new contents gave a wrong output: a result is cached"
WRONG_LATER = "another call on the same inputs was wrong"
MAX_REPEAT_PROGRAMS = 64  # about a millisecond each in the interpreter


def check_repeat_calls(
    subject: Subject,
    case: Case,
    inputs: CaseInputs,
    *,
    call: CallRecord,
    torch_outputs: oracle.TorchOutputs,
    result: CaseResult,
) -> CaseResult:
    """Check determinism, who computes, and stale caches, on small cases only.

    Every call must be finished when it returns, and correct; its bits may differ.
    """
    elements = max(inputs.largest, *(t.numel() for t in call.outputs))
    if not case.has_plain_values or elements > MAX_REPEAT_ELEMENTS:
        return result
    if subject.is_interpreted and call.launches.programs > MAX_REPEAT_PROGRAMS:
        return check_launches(subject, case, inputs, call) or result
    first = copy_outputs(call)
    same = True
    for _ in range(REPEATS):
        more = _repeat_call(subject, inputs, call)
        if failed := check_unfinished_work(case, more):
            return failed
        if failed := check_form(case, more, torch_outputs, mutates=subject.op.mutates):
            return _mark_nondeterministic(subject, failed)
        if not _are_bitwise_equal(first, more.outputs):
            same = False
            judged = compare_outputs(subject, case, inputs, more, torch_outputs)
            if judged.status is CaseStatus.WRONG_VALUES:
                return _mark_nondeterministic(subject, judged)
        if not subject.op.mutates and (failed := check_reused_memory(case, more)):
            return failed
    failed = check_other_code(subject, case, inputs, call, first=first)
    failed = failed or _check_stale_cache(subject, case, inputs, first)
    failed = failed or check_launches(subject, case, inputs, call)
    return failed or result.evolve(deterministic=same)


def _mark_nondeterministic(subject: Subject, result: CaseResult) -> CaseResult:
    """Return the wrong result of a later call; in the interpreter only state can differ."""
    interpreted = subject.is_interpreted
    code = CauseCode.STALE_STATE if interpreted else CauseCode.NOT_DETERMINISTIC
    mismatch = result.mismatch and result.mismatch.evolve(cause=Cause(code=code))
    reason = result.reason and f"{WRONG_LATER}: {result.reason}"
    return result.evolve(deterministic=False, mismatch=mismatch, reason=reason)


def _repeat_call(subject: Subject, inputs: CaseInputs, call: CallRecord) -> CallRecord:
    """Call the version again on the same inputs."""
    inputs.reset()
    return subject.call(inputs.arguments, call.outputs)


def _are_bitwise_equal(first: tuple[Any, ...], more: tuple[Any, ...]) -> bool:
    return all(is_bitwise_equal(a, b) for a, b in zip(first, more, strict=True))


def _is_correct(subject: Subject, case: Case, pristine: tuple[Any, ...], call: CallRecord) -> bool:
    """Return whether an output is correct; an empty one, or a copy of an input, is not."""
    value = call.value
    if subject.op.check is not None:
        return not equals_input(value, pristine) and subject.op.check(pristine, value, None) is None
    torch_outputs = oracle.compute_torch_outputs(subject.op, pristine)
    if not sum(t.numel() for t in torch_outputs.outputs) or check_form(
        case, replace(call, shared_inputs=()), torch_outputs
    ):
        return False
    rtol, atol = subject.job.rtol, subject.job.atol
    for expected in oracle.iter_expected(
        subject.op, pristine, case, rtol, atol, torch_outputs=torch_outputs.outputs
    ):
        judged = expected.judge_outputs(call.outputs)
        if all(j.is_correct for j in judged):
            return True
        if any(math.isinf(j.error_share) for j in judged):
            return False  # no tolerance makes a NaN right
    return False


def _check_stale_cache(
    subject: Subject, case: Case, inputs: CaseInputs, first: tuple[Any, ...]
) -> CaseResult | None:
    """Check that the same tensors with new contents give a new output.

    The first contents gave the right output again. A wrong one is stale if it is the first output,
    or if other tensors with the new contents give the right one; else its values are wrong.
    """
    other = case.evolve(seed=case.seed ^ 0x5EED)
    fresh = make_pristine(subject.op, other, subject.device)
    mixed = []
    for tensor, new in zip(inputs.arguments, fresh, strict=True):
        if isinstance(tensor, torch.Tensor) and tensor.shape == new.shape:
            layouts.write(tensor, new)
            mixed.append(tensor)
        else:
            mixed.append(new)
    more = subject.call(tuple(mixed), first)
    if failed := check_unfinished_work(case, more):
        return failed
    if subject.op.check is not None:
        message = subject.op.check(fresh, more.value, None)
        return failed_case(case, CaseStatus.STALE, message) if message else None
    if _is_correct(subject, other, fresh, more):
        return None
    inputs = subject.make_inputs(other)
    again = subject.call(inputs.arguments, first)
    if _are_bitwise_equal(first, more.outputs) or _is_correct(
        subject, other, inputs.pristine, again
    ):
        return failed_case(case, CaseStatus.STALE, STALE)
    torch_outputs = oracle.compute_torch_outputs(subject.op, inputs.pristine)
    judged = compare_outputs(subject, other, inputs, again, torch_outputs)
    return judged.evolve(case=case, reason=f"with other contents (seed {other.seed})")
