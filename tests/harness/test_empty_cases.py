"""Cases without elements: who has them, and what a version may do there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.harness.kit import CPU, KERNELS, job_for, run_cases
from tests.report_values import interpreter_validation, validation
from triton_magics import operators
from triton_magics.harness.correctness import one_case, validate_job
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.load import load_version
from triton_magics.model import Case, CaseResult, CaseStatus, Status
from triton_magics.model.overall_verdict import overall_verdict

pytestmark = pytest.mark.in_turn

INTERPRETER = DeviceFacts(is_interpreted=True, refused={})
EMPTY = Case(shape=(0, 13), dtype="float32", extent="no elements", seed=1)
NO_TERMS = Case(shape=(7, 5, 0), dtype="float32", extent="no terms", seed=1)
ATTENTION = (KERNELS / "right" / "attention_flash.py").read_text()
DROPOUT = (KERNELS / "right" / "dropout_flat.py").read_text()
SOFTMAX = (KERNELS / "softmax_right.py").read_text()
MATMUL = (KERNELS / "matmul_right.py").read_text()


def run(tmp_path: Path, source: str, case: Case) -> CaseResult:
    (path := tmp_path / "version.py").write_text(source)
    return run_cases(path, case)[0]


def with_guard(source: str, condition: str, then: str) -> str:
    """Return the source with a condition before all else in its wrapper."""
    head, wrapper = source.split("\ndef triton_", 1)
    first, body = wrapper.split("\n", 1)
    return f"{head}\ndef triton_{first}\n    if {condition}:\n        {then}\n{body}"


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("softmax", ["no elements"]),
        ("dropout", ["no elements"]),
        ("matmul", ["no elements", "no terms"]),
    ],
)
def test_full_plans_have_cases_without_elements(op: str, expected: list[str]) -> None:
    path = next(p for p in sorted(KERNELS.rglob("*.py")) if f"\nop: {op}\n" in p.read_text())
    for plan, has in (("quick", []), ("full", expected)):
        cases = plan_cases(operators.load(op), job_for(path, plan=plan), INTERPRETER).cases
        assert [case.extent for case in cases if 0 in case.shape] == has


@pytest.mark.parametrize(
    ("source", "case"),
    [
        (SOFTMAX, EMPTY),
        (with_guard(SOFTMAX, "not x.numel()", "return torch.empty_like(x)"), EMPTY),
        (DROPOUT, EMPTY.evolve(scalars=(("p", 0.5),))),
        (ATTENTION, EMPTY.evolve(shape=(0, 2, 5, 16), scalars=(("is_causal", False),))),
        (MATMUL, NO_TERMS),
    ],
)
def test_right_versions_pass_without_elements(source: str, case: Case, tmp_path: Path) -> None:
    assert run(tmp_path, source, case).status is CaseStatus.PASSED


@pytest.mark.parametrize(
    ("source", "case", "reason"),
    [
        (with_guard(SOFTMAX, "not x.numel()", "1 // 0"), EMPTY, "division"),
        (with_guard(SOFTMAX, "not x.numel()", "raise ValueError('no rows')"), EMPTY, "no rows"),
    ],
)
def test_an_error_without_elements_is_a_limit(
    source: str, case: Case, reason: str, tmp_path: Path
) -> None:
    result = run(tmp_path, source, case)
    assert result.status is CaseStatus.REJECTED
    assert reason in (result.reason or "")


@pytest.mark.parametrize(
    ("words", "is_access"),
    [("an illegal memory access was encountered", True), ("device-side assert triggered", False)],
)
def test_an_error_of_the_context_is_no_limit(words: str, is_access: bool, tmp_path: Path) -> None:
    """No further call of the process can use the GPU then."""
    then = f"raise RuntimeError('CUDA error: {words}')"
    result = run(tmp_path, with_guard(SOFTMAX, "not x.numel()", then), EMPTY)
    assert (result.status, result.invalid_access) == (CaseStatus.RUNTIME_ERROR, is_access)
    assert one_case.breaks_context(result)


def test_another_loss_of_no_rows_is_a_limit() -> None:
    """torch has NaN, the mean of nothing; a sum by atomics has 0."""
    result = run_cases(KERNELS / "right" / "cross_entropy_atomics.py", EMPTY)[0]
    assert result.status is CaseStatus.REJECTED
    assert "not finite" in (result.reason or "")


@pytest.mark.parametrize(
    ("source", "case"),
    [
        (with_guard(SOFTMAX, "not x.numel()", "return x.new_empty(0)"), EMPTY),
        (
            with_guard(MATMUL, "not a.numel()", "return a.new_ones(a.shape[0], b.shape[1])"),
            NO_TERMS,
        ),
    ],
)
def test_a_wrong_output_without_elements_fails(source: str, case: Case, tmp_path: Path) -> None:
    result = run(tmp_path, source, case)
    assert result.status.failed
    assert result.status is not CaseStatus.REJECTED


def test_an_op_undefined_without_elements_has_no_verdict() -> None:
    """torch's attention returns None for no batches on a GPU."""
    path = KERNELS / "softmax_right.py"
    softmax = operators.load("softmax")
    op = dataclasses.replace(
        softmax, reference=lambda x: softmax.reference(x) if x.numel() else None
    )
    job = job_for(path)
    subject = validate_job.Subject(op, load_version(job.version), job, CPU, path.read_text())
    result = one_case.run_case(subject, EMPTY)[0]
    assert result.status is CaseStatus.NOT_RUN
    assert "without elements" in (result.reason or "")
    assert (
        one_case.run_case(subject, EMPTY.evolve(shape=(7, 13), extent=""))[0].status
        is CaseStatus.PASSED
    )


def test_a_guard_for_no_elements_is_no_reason_to_pass() -> None:
    environment = interpreter_validation().environment
    base = validation(status=Status.FAILED, environment=environment, dtypes=("float32",), cases=())
    empty = CaseResult(case=EMPTY, status=CaseStatus.PASSED, error_share=0.0)
    other = CaseResult(
        case=EMPTY.evolve(shape=(7, 13)), status=CaseStatus.NOT_RUN, reason="it needs a GPU"
    )
    assert overall_verdict(base, (other, empty)) == (Status.NO_GPU, "it needs a GPU")
    refused = other.evolve(status=CaseStatus.REJECTED)
    assert overall_verdict(base, (refused, empty))[0] is Status.REJECTED
