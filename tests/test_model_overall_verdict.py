"""Verdicts that are concluded from cases, in one part or in several."""

from __future__ import annotations

import pytest

from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    CodeLine,
    ComputedBy,
    FailurePattern,
    KernelError,
    Status,
    TorchWork,
    Validation,
    ValidationRequest,
)
from triton_magics.model.coverage import PlanScope
from triton_magics.model.overall_verdict import count_checked, count_combinations, join_parts

CASES = tuple(
    Case(shape=(i, 8), dtype=dtype, seed=i, shape_class=shape, regime=regime)
    for i, (dtype, shape, regime) in enumerate(
        [
            ("float32", "one row", "normal"),
            ("float32", "wide", "x10"),
            ("float16", "wide", "normal"),
        ],
        start=1,
    )
)
EXTRA = Case(shape=(9, 9), dtype="float16", seed=9)


def result(case: Case, status: CaseStatus = CaseStatus.PASSED, **facts: object) -> CaseResult:
    own = {"error_share": 0.1} if status is CaseStatus.PASSED else {"reason": status.value}
    return CaseResult(case=case, status=status, **{**own, **facts})


def part(*results: CaseResult, status: Status = Status.PASSED, **facts: object) -> Validation:
    return Validation(
        op="softmax", version="v1", attempt=1, sha256="", status=status, cases=results,
        request=ValidationRequest(seed=1), dtypes=("float32", "float16"), **facts,
    )  # fmt: skip


def test_cases_are_in_the_order_of_the_plan_others_last() -> None:
    first = part(result(CASES[2]), result(EXTRA), duration_s=0.5, triton_kernels=("a", "b"))
    second = part(result(CASES[1]), result(CASES[0]), duration_s=0.7, triton_kernels=("b", "c"))
    joined = join_parts([first, second], CASES)
    assert [r.case for r in joined.cases] == [*CASES, EXTRA]
    assert (joined.status, joined.message, joined.error) == (Status.PASSED, None, None)
    assert joined.duration_s == 0.7
    assert joined.triton_kernels == ("a", "b", "c")
    assert joined.computed_by is None


def test_the_first_failed_case_gives_status_and_error() -> None:
    late, early = (KernelError(kind=kind, message=kind) for kind in ("Late", "Early"))
    failed = CaseStatus.RUNTIME_ERROR
    parts = [
        part(result(CASES[2], failed, error=late), status=Status.RUNTIME_ERROR, error=late),
        part(
            result(CASES[1], CaseStatus.COMPILE_ERROR, error=early),
            status=Status.COMPILE_ERROR,
            error=early,
        ),
    ]
    joined = join_parts(parts, CASES)
    assert joined.status is Status.COMPILE_ERROR
    assert joined.error == early


def test_an_error_without_a_case_is_that_of_the_whole() -> None:
    error = KernelError(kind="ImportError", message="no module")
    lost = part(status=Status.RUNTIME_ERROR, error=error, message="can't be imported")
    joined = join_parts([part(result(CASES[0])), lost], CASES)
    assert (joined.status, joined.error) == (Status.RUNTIME_ERROR, error)
    assert joined.message == "can't be imported"


def test_a_part_without_a_passed_case_does_not_fail_the_whole() -> None:
    nothing = part(
        result(CASES[1], CaseStatus.NOT_RUN), status=Status.FAILED, message="nothing ran"
    )
    joined = join_parts([nothing, part(result(CASES[0]), torch_ops=("sum",))], CASES)
    assert (joined.status, joined.message) == (Status.PASSED, None)
    assert joined.torch_ops == ("sum",)


def test_shares_of_torch_are_those_of_all_parts() -> None:
    shares = (0.002, 0.004)
    operations = [TorchWork(operation="sum", line=3, share=share) for share in shares]
    parts = [
        part(
            result(case, torch_work=(work,)),
            computed_by=ComputedBy(kernel_share=1 - work.share, torch_work=(work,)),
        )
        for case, work in zip(CASES, operations, strict=False)
    ]
    computed_by = join_parts(parts, CASES).computed_by
    assert computed_by is not None
    assert computed_by.kernel_share == pytest.approx(0.996)
    assert computed_by.torch_work == (operations[1],)
    # Where one part alone knows the share, it counts too.
    assert join_parts([parts[0], part(result(CASES[1]))], CASES).computed_by is not None


def test_lines_that_no_part_ran_are_unreached() -> None:
    lines = [CodeLine(file_line=n, cell_line=n, code="pass") for n in (3, 4, 5)]
    first = part(result(CASES[0]), unreached=tuple(lines[:2]))
    second = part(result(CASES[1]), unreached=tuple(lines[1:]))
    assert join_parts([first, second], CASES).unreached == (lines[1],)


def test_combinations_are_those_of_the_cases_that_ran() -> None:
    # dtype, shape class, regime, special: six pairs and four triples in a case.
    assert count_combinations(CASES[:1], 2) == 6
    assert count_combinations(CASES[:1], 3) == 4
    assert count_combinations((*CASES[:1], EXTRA), 2) == 6  # of no class: not of the design
    assert count_combinations(CASES[:2], 2) == 11  # float32 with plain values is in both
    left = Case(
        shape=(1, 8), dtype="float32", seed=1, shape_class="wide", layouts=(("x", "unaligned"),)
    )
    assert count_combinations((left,), 2) == 10
    scaled = Case(
        shape=(1, 8), dtype="float32", seed=1, shape_class="wide", scalars=(("eps", 0.5),)
    )
    assert count_combinations((scaled,), 2) == 10
    scope = PlanScope(n_possible=20, n_covered=17)
    skipped = result(CASES[1], CaseStatus.NOT_RUN), result(CASES[2], CaseStatus.REJECTED)
    counted = count_checked(scope, (result(CASES[0]), *skipped))
    assert counted is not None
    assert (counted.n_covered, counted.n_possible) == (6, 20)
    assert count_checked(None, ()) is None


def test_a_pattern_is_that_of_every_part() -> None:
    def of(condition: str, n: int) -> Validation:
        pattern = FailurePattern(condition=condition, n_failed=n, n_passed=20, n_passed_with=n - 2)
        return part(result(CASES[0]), pattern=pattern)

    joined = join_parts([of("x transposed", 3), of("x transposed", 4)], CASES).pattern
    expected = FailurePattern(condition="x transposed", n_failed=7, n_passed=40, n_passed_with=3)
    assert joined == expected
    assert join_parts([of("x transposed", 3), of("float16", 4)], CASES).pattern is None
    assert join_parts([of("x transposed", 3), part(result(CASES[1]))], CASES).pattern is None
