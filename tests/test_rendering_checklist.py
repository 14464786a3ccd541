"""The checklist of a log: what is met, and each point that is not."""

import dataclasses
from typing import Any

import pytest
import report_values as rv

from triton_magics.model import OpState, Status, Tolerance, ValidationRequest
from triton_magics.rendering import LogInput, markdown_log
from triton_magics.rendering.checklist import checklist

END = "the workflow is at its end"
EMPTY = LogInput(facts=rv.FACTS, state=rv.op_state(0))


def unmet(log: LogInput) -> list[str]:
    return [item.text for item in checklist(log) if not item.is_met]


def test_finished_op_meets_the_checklist() -> None:
    assert unmet(rv.log_input(3)) == []
    assert "✓ 11 of 11 points are met" in markdown_log(rv.log_input(3))


QUICK = ValidationRequest(plan="quick", seed=1)
LOOSENED = rv.passed_cases()[0].evolve(
    tolerance=Tolerance(rtol=0.1, atol=0.0, origin="the op's own", loosened=True)
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"request": QUICK}, "Phase 3: checked on a GPU, with the full plan"),
        ({"environment": rv.CPU}, "Phase 3: checked on a GPU, with the full plan"),
        ({"cases": (LOOSENED,)}, "Phase 3: no tolerance was loosened"),
        ({"status": Status.FAILED}, "Phase 3: every version is right"),
    ],
)
def test_each_fault_fails_one_point(changes: dict[str, Any], expected: str) -> None:
    log = rv.log_input(3)
    last = log.versions[2]
    verdict = last.validations[-1].evolve(**changes)
    versions = (*log.versions[:2], dataclasses.replace(last, validations=(verdict,)))
    log = dataclasses.replace(log, versions=versions)
    assert unmet(log) == [expected]
    assert "— not v3" in markdown_log(log)


def test_other_points_of_the_checklist() -> None:
    assert unmet(rv.log_input(2)) == ["Phase 2: at least 3 versions were written", END]
    assert unmet(rv.log_input(3, best=None)) == ["Phase 4: a version was chosen"]
    assert unmet(rv.log_input(3, best=rv.best(provisional="x"))) == [
        "Phase 4: a version was chosen"
    ]
    assert unmet(rv.log_input(3, notes=("forced: in a hurry",))) == ["no step was forced"]
    start: OpState = rv.op_state(3, state="start")
    assert unmet(rv.log_input(3, state=start)) == ["Phase 1: the references were shown", END]
    assert len(unmet(EMPTY)) == 9


def test_too_few_runs_do_not_count() -> None:
    log = rv.log_input(3)
    assert log.benchmark
    short = tuple(
        t.evolve(samples_us=t.samples_us[:9]) if t.provider == "v2_tiling" else t
        for t in log.benchmark.timings
    )
    measured = log.benchmark.evolve(timings=short)
    versions = tuple(dataclasses.replace(v, benchmark=measured) for v in log.versions)
    assert unmet(dataclasses.replace(log, versions=versions)) == [
        "Phase 3: 10 runs at small, medium and large"
    ]


def test_version_without_a_verdict_has_no_loosened_tolerance() -> None:
    log = rv.log_input(3)
    versions = (*log.versions[:2], dataclasses.replace(log.versions[2], validations=()))
    assert unmet(dataclasses.replace(log, versions=versions)) == [
        "Phase 3: every version is right",
        "Phase 3: checked on a GPU, with the full plan",
    ]


def test_version_that_failed_too_often_fails_no_point() -> None:
    log = rv.log_input(3)
    wrong = log.versions[2].validations[-1].evolve(status=Status.FAILED)
    versions = (*log.versions[:2], dataclasses.replace(log.versions[2], validations=(wrong,)))
    state = log.state.evolve(
        versions=(*log.state.versions[:2], log.state.versions[2].evolve(exhausted=True))
    )
    assert unmet(dataclasses.replace(log, versions=versions, state=state)) == []


def test_checklist_names_and_counts_the_sizes_of_the_op() -> None:
    log = rv.log_input(3)
    one = log.facts.evolve(sizes={"only": (8, 40)})
    items = [item.text for item in checklist(dataclasses.replace(log, facts=one))]
    assert "Phase 3: 10 runs at only" in items
    timed = log.versions[2].benchmark
    assert timed is not None
    more = dataclasses.replace(
        log.versions[2], benchmark=timed.evolve(op_sizes=("small", "medium", "large", "vocab"))
    )
    log = dataclasses.replace(log, versions=(*log.versions[:2], more))
    assert "Phase 3: 10 runs at small, medium and large" in unmet(log)
