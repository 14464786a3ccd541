"""Tests of the rules that refuse an impossible result, built or evolved."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from tests import report_values as rv
from triton_magics.model import (
    BadgeCode,
    Benchmark,
    CaseResult,
    CaseStatus,
    Configuration,
    Event,
    KernelError,
    Result,
    RunResult,
    SelfCheck,
    SelfTest,
    Status,
    Sweep,
    Tolerance,
    Validation,
)
from triton_magics.store.event_json import parse_event

ERROR = KernelError(kind="CompileError", message="no")
PASSED = rv.passed_cases(("float32",))
INCONCLUSIVE = tuple(case.evolve(calibrated=False) for case in PASSED)
RUN = {
    "op": "softmax", "version": "v1", "attempt": 1, "sha256": "0", "status": Status.PASSED,
    "inputs": "small",
}  # fmt: skip
SWEEP = {
    **{k: v for k, v in RUN.items() if k != "inputs"},
    "knobs": {"N": (1,)}, "size": "small", "shape": (2, 3), "dtype": "float32", "seed": 1,
    "configurations": (Configuration(settings={"N": 1}, status=CaseStatus.PASSED),),
}  # fmt: skip

NONSENSE: dict[str, tuple[Callable[[], Result], str]] = {
    "validation that passed without a case": (
        lambda: rv.validation(cases=()),
        "without a case that passed",
    ),
    "validation that passed with a failed case": (
        lambda: rv.validation(cases=(*PASSED, rv.wrong_case())),
        "passed and has failed cases",
    ),
    "validation that passed with an error": (
        lambda: rv.validation(error=ERROR),
        "passed and has an error",
    ),
    "compile error without its error": (
        lambda: rv.compilation("v1_baseline", status=Status.COMPILE_ERROR),
        "a compile error has its error",
    ),
    "benchmark that passed without timings": (
        lambda: rv.benchmark(1, timings=()),
        "has timings",
    ),
    "benchmark with fewer hashes than versions": (
        lambda: rv.benchmark(2, sha256s=("0",)),
        "each version has one sha256",
    ),
    "self-test that passed without checks": (
        lambda: SelfTest(status=Status.PASSED),
        "has checks",
    ),
    "self-test that passed with a failed check": (
        lambda: SelfTest(
            status=Status.PASSED, checks=(SelfCheck(name="w", passed=False, outcome="s"),)
        ),
        "all of them pass",
    ),
    "run that passed without durations": (lambda: RunResult(**RUN), "two durations"),
    "sweep on a GPU that passed without a timing": (
        lambda: Sweep(**SWEEP, clock="gpu"),
        "has a timing",
    ),
    "sweep that passed and compiled nothing": (lambda: Sweep(**SWEEP), "has a kernel"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_result_that_breaks_a_rule_is_refused(name: str) -> None:
    build, words = NONSENSE[name]
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize(
    "changes", [{"status": "banana"}, {"runz": 3}, {"timings": ()}, {"error": ERROR}]
)
def test_benchmark_can_not_be_changed_into_nonsense(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rv.benchmark(1).evolve(**changes)


def test_exact_case_is_conclusive() -> None:
    exact = Tolerance(rtol=0.0, atol=0.0, origin="integers")
    case = INCONCLUSIVE[0].evolve(tolerance=exact)
    assert rv.validation(cases=(case,), dtypes=("float32",)).is_conclusive
    assert not INCONCLUSIVE[0].is_conclusive


@pytest.mark.parametrize(
    ("cases", "codes"),
    [
        (INCONCLUSIVE, [BadgeCode.UNCALIBRATED]),
        (
            tuple(c.evolve(tolerance=c.tolerance.evolve(loosened=True)) for c in PASSED),
            [BadgeCode.LOOSENED_TOLERANCE],
        ),
    ],
)
def test_verdict_without_evidence_does_not_count_as_full(
    cases: tuple[CaseResult, ...], codes: list[BadgeCode]
) -> None:
    verdict = rv.validation(cases=cases, dtypes=("float32",))
    assert verdict.passed
    assert [badge.code for badge in verdict.badges] == codes
    assert not verdict.is_conclusive
    assert not verdict.coverage.is_full
    whole = rv.validation(cases=PASSED, dtypes=("float32",))
    assert whole.is_conclusive
    assert whole.coverage.is_full


# ------------------------------------------------------------------------------ older records


def make_event(result: Result, **changes: Any) -> Event:
    """Return an event of an older record, in which a result breaks today's rules."""
    event = {
        "uuid": "u", "time": "t", "op": "softmax", "verb": "validated", "state_before": "write",
        "state_after": "write", "result": {**result.model_dump(mode="json"), **changes},
    }  # fmt: skip
    return parse_event(json.dumps(event))


def test_recorded_pass_without_evidence_is_read_as_failed() -> None:
    for result, changes in ((rv.validation(), {"cases": []}), (rv.benchmark(1), {"timings": []})):
        corrected = make_event(result, **changes).result
        assert isinstance(corrected, Validation | Benchmark)
        assert corrected.status is Status.FAILED
        assert corrected.message == "recorded as passed without evidence: run it again"


def test_recorded_compile_error_gets_its_recorded_error() -> None:
    corrected = make_event(
        rv.compilation("v1_baseline"), status="compile_error", message="ptxas"
    ).result
    assert isinstance(corrected, Result)
    assert corrected.error == KernelError(kind="CompileError", message="ptxas")
    point = Configuration(settings={"N": 1}, status=CaseStatus.COMPILE_ERROR, error=ERROR)
    sweep = Sweep(**{**SWEEP, "status": Status.FAILED, "configurations": (point,)})
    corrected = make_event(sweep, status="compile_error").result
    assert isinstance(corrected, Sweep)
    assert corrected.error == ERROR


def test_sound_record_is_read_as_it_is() -> None:
    assert make_event(rv.validation()).result == rv.validation()


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "banana"},
        {"status": "compile_error", "cases": [3]},
        {"status": "passed", "op": 3},
    ],
)
def test_record_that_can_not_be_corrected_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make_event(rv.validation(), **changes)
