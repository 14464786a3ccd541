"""The checks that call a version again: determinism, stale caches, launches taken out."""

from __future__ import annotations

import math
from typing import Any

import torch

from triton_magics.model import Case, CaseResult, CaseStatus
from triton_magics.worker import oracle
from triton_magics.worker.cases import Inputs, make_inputs, make_pristine, same_bits
from triton_magics.worker.checks import fail, returned_before, unfinished, wrong_form
from triton_magics.worker.compare import compared
from triton_magics.worker.guard import guarding
from triton_magics.worker.launches import watching
from triton_magics.worker.pretend import pretending
from triton_magics.worker.subject import Call, Subject, another_call

THOROUGH_ELEMENTS = 300_000
REPEATS = 2
WRONG_LATER = "another call on the same inputs was wrong"
ONE_WRITER = "tl.atomic_add(out_ptr + offsets, value, mask=mask), or one program a place"
FEW_PROGRAMS = 64  # about a millisecond each in the interpreter


def called_again(
    subject: Subject,
    case: Case,
    inputs: Inputs,
    *,
    call: Call,
    native: oracle.Native,
    result: CaseResult,
) -> CaseResult:
    """Determinism, no-op launches and stale caches, on cases small enough to be cheap.

    Every call has to be finished when it returns, and right; its bits may differ.
    """
    elements = max(inputs.largest, *(t.numel() for t in call.outputs))
    if case.regime != "normal" or elements > THOROUGH_ELEMENTS:
        return result
    if subject.interpreted and call.launches.programs > FEW_PROGRAMS:
        return _noop(subject, case) or result
    first = _copies(call)
    same = True
    for _ in range(REPEATS):
        more = _repeated(subject, inputs, call)
        if failed := unfinished(case, more):
            return failed
        if failed := wrong_form(case, inputs.unchanged, more.value, native):
            return _shaky(failed, WRONG_LATER, "something kept between calls")
        if not _same_bits(first, more.outputs):
            same = False
            judged = compared(subject, case, inputs, more, native)
            if judged.status is CaseStatus.WRONG_VALUES:
                return _shaky(judged, WRONG_LATER, "a race, or something kept between calls")
        if not subject.op.mutates and (failed := returned_before(case, more.value, call.outputs)):
            return failed
    failed = _stale(subject, case, inputs, call) or _noop(subject, case)
    return failed or result.model_copy(update={"deterministic": same})


def races(subject: Subject, inputs: Inputs, call: Call, result: CaseResult) -> CaseResult:
    """A wrong output with a race as its cause, where calls on the same inputs differ."""
    if subject.interpreted or result.mismatch is None:
        return result
    first = _copies(call)
    repeats = (_repeated(subject, inputs, call).outputs for _ in range(REPEATS))
    if all(_same_bits(first, more) for more in repeats):
        return result.model_copy(update={"deterministic": True})
    return _shaky(
        result, "two calls on the same inputs differ", "programs write the same place, a race"
    )


def _shaky(result: CaseResult, what: str, why: str) -> CaseResult:
    """A wrong output whose cause is that calls differ."""
    cause = {"cause": f"{what}: {why}", "advice": ONE_WRITER}
    mismatch = result.mismatch and result.mismatch.model_copy(update=cause)
    reason = result.reason and f"{what}: {result.reason}"
    update = {"deterministic": False, "mismatch": mismatch, "reason": reason}
    return result.model_copy(update=update)


def _copies(call: Call) -> tuple[Any, ...]:
    """A call's outputs as they are now: another call may write into the same memory."""
    return tuple(t.clone() for t in call.outputs)


def _repeated(subject: Subject, inputs: Inputs, call: Call) -> Call:
    """Another call on the same inputs."""
    inputs.reset()
    return another_call(subject, inputs.given, call)


def _same_bits(first: tuple[Any, ...], more: tuple[Any, ...]) -> bool:
    return all(same_bits(a, b) for a, b in zip(first, more, strict=True))


def _noop(subject: Subject, case: Case) -> CaseResult | None:
    """With no Triton launch the output must be wrong, or the kernels did not make it.

    On inputs of their own, so that an answer kept from an earlier call is not taken for torch's.
    """
    other = case.model_copy(update={"seed": case.seed ^ 0xA0})
    inputs = make_inputs(subject.op, other, subject.device)
    try:
        with torch.no_grad(), guarding(), pretending(subject.device), watching(suppress=True):
            value = subject.version.call(*inputs.given)
    except BaseException:  # noqa: BLE001 (it needs what its kernels would have made: as it should be)
        return None
    if not _right(subject, other, inputs.pristine, value, inputs.given):
        return None
    if not any(bool(t.any()) for t in oracle.all_outputs(subject.op, value, inputs.given)):
        return None  # a buffer that was zeroed for atomics is right wherever the answer is zero
    if same_values(value, inputs.pristine):
        return None  # and a copy to work on in place wherever the answer is the input
    return fail(
        case,
        CaseStatus.NOT_TRITON,
        "with every Triton launch taken out the output is still right: torch makes it",
    )


def _right(
    subject: Subject, case: Case, pristine: tuple[Any, ...], value: Any, given: tuple[Any, ...]
) -> bool:
    """Whether an output is right for its inputs; an empty one, or a copy of them, is not."""
    if subject.op.check is not None:
        return not same_values(value, pristine) and subject.op.check(pristine, value, None) is None
    native = oracle.native(subject.op, pristine)
    if not sum(t.numel() for t in native.outputs) or wrong_form(case, (), value, native):
        return False
    got = oracle.all_outputs(subject.op, value, given)
    rtol, atol = subject.job.rtol, subject.job.atol
    for expected in oracle.plain_first(
        subject.op, pristine, case, rtol, atol, known=native.outputs
    ):
        judged = expected.judged(got)
        if all(j.right for j in judged):
            return True
        if any(math.isinf(j.error_share) for j in judged):
            return False  # no tolerance makes a NaN right
    return False


def same_values(value: Any, pristine: tuple[Any, ...]) -> bool:
    """Whether an output equals one of the inputs."""
    tensors = (x for x in pristine if isinstance(x, torch.Tensor))
    return isinstance(value, torch.Tensor) and any(
        x.shape == value.shape and x.dtype == value.dtype and same_bits(x, value) for x in tensors
    )


def _stale(subject: Subject, case: Case, inputs: Inputs, call: Call) -> CaseResult | None:
    """The same tensors with new contents must give a new answer."""
    other = case.model_copy(update={"seed": case.seed ^ 0x5EED})
    fresh = make_pristine(subject.op, other, subject.device)
    mixed = []
    for held, new in zip(inputs.given, fresh, strict=True):
        if isinstance(held, torch.Tensor) and held.shape == new.shape:
            held.data.copy_(new)  # .data: the version counter does not see it
            mixed.append(held)
        else:
            mixed.append(new)
    more = another_call(subject, tuple(mixed), call)
    if failed := unfinished(case, more):
        return failed
    if subject.op.check is not None:
        message = subject.op.check(fresh, more.value, None)
        return fail(case, CaseStatus.STALE, message) if message else None
    if _right(subject, other, fresh, more.value, tuple(mixed)):
        return None
    return fail(
        case,
        CaseStatus.STALE,
        "the same tensors with new contents gave a wrong answer: something is cached",
    )
