"""Run one case of a validation with all its checks."""

from __future__ import annotations

import time

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import CallFailure, CallRecord, VersionRaised
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.cause_experiments import explain_wrong_values
from triton_magics.harness.correctness.comparison import CaseOracle, judge_first
from triton_magics.harness.correctness.computed_by import check_torch_work, lacks_launch
from triton_magics.harness.correctness.empty_cases import limit_of_values
from triton_magics.harness.correctness.output_checks import (
    check_form,
    check_race,
    check_reads,
    check_side_effects,
    failed_case,
    is_scattered,
)
from triton_magics.harness.correctness.repeat_calls import check_repeat_calls
from triton_magics.harness.correctness.skip_rules import limit_of_call, not_run_result
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault
from triton_magics.languages.kernel_runtime import Launches, NeedsGpu
from triton_magics.languages.launch_limits import find_limit
from triton_magics.model import Case, CaseResult, CaseStatus

SLOW_ON_CPU_S = 0.1  # of a reference: then no later case is judged on the CPU
ILLEGAL_ACCESS = "illegal memory access"  # as the CUDA driver writes it
_CONTEXT_ERRORS = (
    "CUDA error", ILLEGAL_ACCESS, "misaligned address", "device-side assert",
    "unspecified launch failure", "illegal instruction",
)  # fmt: skip


def is_context_error(message: str) -> bool:
    """Return whether no further call of the process can use the GPU after this error."""
    return any(words in message for words in _CONTEXT_ERRORS)


def breaks_context(result: CaseResult) -> bool:
    """Return whether a case left the GPU's context unusable."""
    message = result.error.message if result.error else ""
    return result.status is CaseStatus.RUNTIME_ERROR and is_context_error(message)


def run_case(subject: Subject, case: Case) -> tuple[CaseResult, Launches]:
    """Run one case with all its checks; return its result and its launches.

    Raises:
        UserFault: the op's own code fails, other than on inputs without elements.
    """
    started = time.monotonic()
    launches = Launches()
    subject.free_inputs()
    try:
        inputs, torch_outputs = _begin(subject, case)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return not_run_result(case, "its inputs do not fit the GPU's free memory"), launches
    except UserFault as fault:
        return _not_defined(case, fault), launches
    try:
        expected = CaseOracle(subject, case, inputs, torch_outputs)

        def meanwhile() -> None:
            subject.advance_compilers()
            expected.prepare()
            subject.inputs_ahead.prepare()

        call = subject.guarded_call(
            inputs, torch_outputs.outputs, meanwhile, limit_s=limit_of_call(subject, case)
        )
        launches = call.launches
        result = check_side_effects(case, inputs, call)
        result = result or _check_output(expected, call)
    except VersionRaised as raised:
        launches = raised.launches if not launches.names else launches
        result = _error_result(subject, case, raised.failure, raised.launches)
    except UserFault as fault:
        result = _not_defined(case, fault)
    return result.evolve(duration_s=time.monotonic() - started), launches


def _begin(subject: Subject, case: Case) -> tuple[CaseInputs, oracle.TorchOutputs]:
    """Return the inputs of a case, and torch's own outputs where the version's are judged first.

    Raises:
        UserFault: the op's own code fails.
        torch.OutOfMemoryError: the case is too large for this GPU.
    """
    inputs = subject.make_first_inputs(case)
    if inputs.staged is None:
        return inputs, oracle.compute_torch_outputs(subject.op, inputs.pristine)
    started_s = time.monotonic()
    try:
        return inputs, oracle.compute_torch_outputs(subject.op, inputs.pristine)
    except UserFault as fault:
        subject.needs_gpu.append(str(fault))
    finally:
        if (took_s := time.monotonic() - started_s) > SLOW_ON_CPU_S:
            subject.needs_gpu.append(f"the reference took {took_s:.2g} s on the CPU")
    inputs = inputs.beside_arguments
    return inputs, oracle.compute_torch_outputs(subject.op, inputs.pristine)


def _not_defined(case: Case, fault: UserFault) -> CaseResult:
    """Return the result of a case without elements, for which the op is not defined.

    Raises:
        UserFault: the case has elements.
    """
    if not case.is_empty:
        raise fault
    return not_run_result(case, f"the op is not defined without elements: {fault}")


def _error_result(
    subject: Subject, case: Case, failure: CallFailure, launches: Launches
) -> CaseResult:
    """Return the result of a case whose call raised, after these launches."""
    error = failure.error
    if error.kind == NeedsGpu.__name__:
        return not_run_result(case, error.message)
    if failure.refuses:
        return failed_case(case, CaseStatus.REJECTED, failure.text, error=error)
    message = error.message[:300]
    limit = find_limit(error.message, launches.grids) if case.extent else None
    if case.is_empty and not is_context_error(error.message):
        limit = limit or message
    if limit:
        return failed_case(case, CaseStatus.REJECTED, limit, error=error)
    if failure.out_of_memory:
        return failed_case(case, CaseStatus.OUT_OF_MEMORY, message, error=error)
    compiler = subject.runtime.is_compile_error(error)
    status = CaseStatus.COMPILE_ERROR if compiler else CaseStatus.RUNTIME_ERROR
    failed = failed_case(case, status, message, error=error)
    return failed.evolve(invalid_access=ILLEGAL_ACCESS in error.message)


def _check_output(expected: CaseOracle, call: CallRecord) -> CaseResult:
    """Check the form of the output, then its values, then what further calls show."""
    subject, case = expected.subject, expected.case
    if failed := check_form(
        case, call, expected.torch_outputs, device=subject.device, mutates=subject.op.mutates
    ):
        return failed
    try:
        expected, result = judge_first(expected, call)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return not_run_result(case, "its float64 oracle does not fit the GPU's free memory")
    inputs, torch_outputs = expected.inputs, expected.torch_outputs
    if result.status is CaseStatus.WRONG_VALUES:
        if case.is_empty and (limit := limit_of_values(torch_outputs.outputs)):
            return failed_case(case, CaseStatus.REJECTED, limit)
        with subject.explanation(case):
            return explain_wrong_values(subject, case, inputs, call, result)
    if failed := check_reads(case, call) or check_race(case, call):
        return failed
    if lacks_launch(subject, inputs, call):
        reason = f"no {subject.runtime.title} kernel ran: torch computed the output"
        return failed_case(case, CaseStatus.NOT_TRITON, reason)
    failed, torch_work = check_torch_work(subject, case, inputs, call)
    result = failed or check_repeat_calls(
        subject, case, inputs, call=call, torch_outputs=torch_outputs, result=result
    )
    return result.evolve(
        torch_work=torch_work, is_scattered=is_scattered(case, call, torch_outputs)
    )
