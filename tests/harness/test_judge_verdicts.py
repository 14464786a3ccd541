"""The verdict from the results of cases, and the form of a return value, rule by rule."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from tests import report_values
from triton_magics.harness.correctness import output_checks
from triton_magics.harness.correctness.call_record import CallRecord, DataFlow
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.conclusion import conclude_validation
from triton_magics.harness.correctness.launch_evidence import LaunchEvidence
from triton_magics.harness.correctness.oracle import TorchOutputs
from triton_magics.harness.correctness.output_forms import Placing, placing_of
from triton_magics.languages.kernel_runtime import Launches
from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    KernelError,
    PlanScope,
    Status,
    TorchWork,
    Validation,
)
from triton_magics.model.overall_verdict import overall_verdict

CASE = Case(shape=(2, 3), dtype="float32", seed=1)
SIZED = CASE.evolve(size="small")
ERROR = KernelError(kind="IndexError", message="outside")


def result(status: CaseStatus, case: Case = CASE, **more: Any) -> CaseResult:
    values: dict[str, Any] = {"case": case, "status": status, "reason": f"because {status}"}
    if status is CaseStatus.PASSED:
        values |= {"error_share": 0.5}
    return CaseResult(**values | more)


def validation(**changes: Any) -> Validation:
    values = {"status": Status.INTERRUPTED, "cases": (), "dtypes": ("float32", "float16")}
    return report_values.validation(**values | changes)


@pytest.mark.parametrize(
    ("results", "status", "message"),
    [
        ([CaseStatus.PASSED], Status.PASSED, None),
        ([CaseStatus.PASSED, CaseStatus.NOT_RUN], Status.PASSED, None),
        ([CaseStatus.PASSED, CaseStatus.REJECTED], Status.PASSED, None),
        ([CaseStatus.PASSED, CaseStatus.WRONG_VALUES], Status.FAILED, None),
        ([CaseStatus.COMPILE_ERROR, CaseStatus.WRONG_VALUES], Status.COMPILE_ERROR, None),
        ([CaseStatus.PASSED, CaseStatus.RUNTIME_ERROR], Status.RUNTIME_ERROR, None),
        ([CaseStatus.OUT_OF_MEMORY], Status.OUT_OF_MEMORY, None),
        (
            [CaseStatus.REJECTED, CaseStatus.NOT_RUN],
            Status.REJECTED,
            "it rejects every input: because rejected",
        ),
        ([CaseStatus.NOT_RUN], Status.FAILED, "no case could be run here"),
        ([], Status.FAILED, "no case could be run here"),
    ],
)
def test_verdict_of_the_cases(
    results: list[CaseStatus], status: Status, message: str | None
) -> None:
    assert overall_verdict(validation(), tuple(map(result, results))) == (status, message)


def test_a_size_that_is_refused_refuses_the_version() -> None:
    half = SIZED.evolve(dtype="float16")
    cases = (result(CaseStatus.PASSED), result(CaseStatus.REJECTED, half))
    message = f"it rejects {half.label}: because rejected"
    assert overall_verdict(validation(), cases) == (Status.REJECTED, message)
    assert overall_verdict(validation(dtypes=("float32",)), cases)[0] is Status.PASSED
    cases = (result(CaseStatus.PASSED, half), result(CaseStatus.PASSED))
    assert overall_verdict(validation(), cases)[0] is Status.PASSED


def test_nothing_that_the_cpu_can_run_is_no_verdict() -> None:
    cpu = report_values.interpreter_validation().environment
    base = validation(environment=cpu)
    assert base.device_kind == "interpreter"
    cases = (result(CaseStatus.NOT_RUN),)
    assert overall_verdict(base, cases) == (Status.NO_GPU, "because not_run")
    assert overall_verdict(base, ()) == (Status.FAILED, "no case could be run here")


def test_conclusion_has_the_first_failure_and_the_evidence() -> None:
    evidence = LaunchEvidence()
    evidence.add(Launches(names=("kernel",), torch_ops=("sum",)))
    work = TorchWork(operation="sum", share=0.25)
    cases = (
        result(CaseStatus.PASSED, torch_work=(work,)),
        result(CaseStatus.OUT_OF_BOUNDS, error=ERROR),
        result(CaseStatus.RACE, error=KernelError(kind="Race", message="later")),
    )
    done = conclude_validation(validation(), cases, 0.0, evidence=evidence)
    assert (done.status, done.error, done.cases) == (Status.FAILED, ERROR, cases)
    assert (done.triton_kernels, done.torch_ops) == (("kernel",), ("sum",))
    assert done.computed_by is not None
    assert done.computed_by.kernel_share == 0.75
    assert done.duration_s is not None
    assert done.duration_s > 0
    assert done.message is None


def test_conclusion_with_a_status_keeps_it() -> None:
    other = KernelError(kind="Other", message="at import")
    base = validation(scope=None)
    done = conclude_validation(
        base, (result(CaseStatus.RACE, error=ERROR),), 0.0, error=other, status=Status.CRASHED
    )
    assert (done.status, done.error, done.scope, done.message) == (
        Status.CRASHED, other, None, None
    )  # fmt: skip
    assert (done.triton_kernels, done.torch_ops, done.computed_by) == ((), (), None)


def test_only_cases_that_ran_are_covered() -> None:
    designed = CASE.evolve(shape_class="one row")
    other = designed.evolve(regime="x10")
    base = validation(scope=PlanScope(strength=1, n_possible=9, n_covered=9))
    for unchecked in (CaseStatus.NOT_RUN, CaseStatus.REJECTED):
        cases = (result(CaseStatus.PASSED, designed), result(unchecked, other))
        done = conclude_validation(base, cases, 0.0)
        assert done.scope is not None
        assert done.scope.n_covered == 4  # dtype, shape, regime and special of the one that ran
        more = (*cases, result(CaseStatus.PASSED, designed.evolve(special="zeros")))
        done = conclude_validation(base, more, 0.0)
        assert done.scope is not None
        assert done.scope.n_covered == 5


def test_duration_is_since_the_start() -> None:
    done = conclude_validation(validation(), (), time.monotonic() - 1000)
    assert done.duration_s == pytest.approx(1000, rel=0.2)


# ------------------------------------------------------------------------------------ one call


def call(value: Any, **more: Any) -> CallRecord:
    outputs = value if isinstance(value, tuple) else (value,)
    return CallRecord(value, outputs, DataFlow(), **more)


def check(value: Any, expected: tuple[torch.Tensor, ...], **more: Any) -> CaseResult | None:
    one = more.pop("returns_tensor", len(expected) == 1)
    torch_outputs = TorchOutputs(expected, expected, returns_tensor=one)
    mutates = more.pop("mutates", ())
    return output_checks.check_form(CASE, call(value, **more), torch_outputs, mutates=mutates)


ONE, TWO = torch.zeros(2), torch.zeros(3)
OVERLAPPING = Placing.OVERLAPPING


@pytest.mark.parametrize(
    ("value", "expected", "more", "status", "reason"),
    [
        (TWO, (ONE,), {}, CaseStatus.WRONG_SHAPE, "returned [3], should be [2]"),
        (
            ONE.double(), (ONE,), {}, CaseStatus.WRONG_DTYPE,
            "returned torch.float64, should be torch.float32",
        ),
        (
            torch.empty(2, device="meta"), (ONE,), {}, CaseStatus.WRONG_DEVICE,
            "returned a tensor on meta, should be cpu",
        ),
        (None, (ONE,), {}, CaseStatus.WRONG_TYPE, "returned None, should be a torch.Tensor"),
        ((ONE,), (ONE,), {}, CaseStatus.WRONG_TYPE, "returned a tuple, should be one tensor"),
        (ONE, (ONE, TWO), {}, CaseStatus.WRONG_TYPE, "returned a Tensor, should be 2 tensors"),
        ((ONE,), (ONE, TWO), {}, CaseStatus.WRONG_TYPE, "returned a tuple, should be 2 tensors"),
        (
            ONE, (), {"returns_tensor": False}, CaseStatus.WRONG_TYPE,
            "returned a Tensor, should be None: this op changes its inputs",
        ),
        (3, (ONE,), {}, CaseStatus.WRONG_TYPE, "returned a int, should be a torch.Tensor"),
        (
            torch.nn.Parameter(ONE), (ONE,), {}, CaseStatus.WRONG_TYPE,
            "returned a Parameter, should be a torch.Tensor",
        ),
        (
            ONE, (ONE,), {"shared_inputs": (1,), "mutates": (0,)}, CaseStatus.ALIASED,
            "the output shares memory with an input",
        ),
        (
            ONE, (ONE,), {"placings": (OVERLAPPING,)}, CaseStatus.ALIASED,
            output_checks.OVERLAPPING,
        ),
    ],
)  # fmt: skip
def test_form_that_is_wrong(
    value: Any,
    expected: tuple[torch.Tensor, ...],
    more: dict[str, Any],
    status: CaseStatus,
    reason: str,
) -> None:
    outcome = check(value, expected, **more)
    assert outcome is not None
    assert (outcome.status, outcome.reason) == (status, reason)


@pytest.mark.parametrize(
    ("tensor", "placing"),
    [
        (torch.zeros(3, 4), "contiguous"),
        (torch.zeros(4, 3).T, "scattered"),
        (torch.zeros(8, 8)[::2, ::3], "scattered"),
        (torch.zeros(1, 4).expand(1, 4), "contiguous"),
        (torch.zeros(0, 4)[:, :1].expand(0, 4), "contiguous"),
        (torch.zeros(1, 4).expand(3, 4), "overlapping"),
        (torch.zeros(3, 1).expand(3, 4), "overlapping"),
        (torch.zeros(9).as_strided((3, 4), (2, 1)), "overlapping"),
    ],
)
def test_how_the_elements_of_a_tensor_lie(tensor: torch.Tensor, placing: str) -> None:
    assert placing_of(tensor) == placing


@pytest.mark.parametrize(
    ("case", "like", "scattered"),
    [
        (CASE, torch.zeros(3, 4), True),
        (CASE, torch.zeros(4, 3).T, False),  # torch's own is not contiguous either
        (CASE.evolve(layouts=(("x", "transposed"),)), torch.zeros(3, 4), False),
    ],
)
def test_an_output_that_is_not_contiguous(case: Case, like: torch.Tensor, scattered: bool) -> None:
    torch_outputs = TorchOutputs((like,), (like,), returns_tensor=True)
    own = call(torch.zeros(4, 3).T, placings=(Placing.SCATTERED,))
    assert output_checks.is_scattered(case, own, torch_outputs) is scattered


@pytest.mark.parametrize(
    ("value", "expected", "more"),
    [
        (ONE, (ONE,), {}),
        ((ONE, TWO), (ONE, TWO), {}),
        ([ONE, TWO], (ONE, TWO), {}),
        (None, (), {"returns_tensor": True}),
        (ONE, (ONE,), {"shared_inputs": (1,), "mutates": (1,)}),
        (ONE, (ONE[:1].expand(2),), {"placings": (OVERLAPPING,)}),  # the reference's overlaps too
        (ONE, (ONE,), {"placings": (OVERLAPPING,), "mutates": (0,)}),
    ],
)
def test_form_that_is_right(
    value: Any, expected: tuple[torch.Tensor, ...], more: dict[str, Any]
) -> None:
    assert check(value, expected, **more) is None


INPUTS = CaseInputs(arguments=(ONE,), guards=(), pristine=(ONE.clone(),))


@pytest.mark.parametrize(
    ("more", "status", "reason"),
    [
        ({"damage": ("written behind",)}, CaseStatus.OUT_OF_BOUNDS, "written behind"),
        (
            {"replaced": ("a", "b", "c", "d")}, CaseStatus.TAMPERED,
            "the version replaced a, b, c",
        ),
        ({"late_work": "a thread"}, CaseStatus.UNFINISHED_WORK, "a thread"),
        ({"left_behind": "a flag"}, CaseStatus.SIDE_EFFECT, "a flag"),
        ({}, None, None),
    ],
)  # fmt: skip
def test_side_effects_of_a_call(
    more: dict[str, Any], status: CaseStatus | None, reason: str | None
) -> None:
    outcome = output_checks.check_side_effects(CASE, INPUTS, call(ONE, **more))
    assert (outcome and outcome.status, outcome and outcome.reason) == (status, reason)


def test_changed_input_and_the_access_behind_it() -> None:
    changed = CaseInputs(arguments=(ONE + 1,), guards=(), pristine=(ONE,))
    outcome = output_checks.check_side_effects(CASE, changed, call(ONE))
    assert outcome is not None
    assert (outcome.status, outcome.reason) == (
        CaseStatus.MUTATED_INPUT, "input 0 was changed by the call"
    )  # fmt: skip
    outcome = output_checks.check_side_effects(
        CASE, INPUTS, call(ONE, damage=("written behind",), outside=ERROR)
    )
    assert outcome is not None
    assert outcome.error == ERROR


def test_access_and_race_of_an_interpreter() -> None:
    assert output_checks.check_reads(CASE, call(ONE)) is None
    assert output_checks.check_race(CASE, call(ONE)) is None
    read = output_checks.check_reads(CASE, call(ONE, outside=ERROR))
    race = output_checks.check_race(CASE, call(ONE, race=ERROR))
    assert read is not None
    assert race is not None
    assert (read.status, read.reason, read.error) == (CaseStatus.OUT_OF_BOUNDS, "outside", ERROR)
    assert (race.status, race.reason, race.error) == (CaseStatus.RACE, "outside", ERROR)
