"""The checklist of a log: what is met, and each point that is not."""

import dataclasses
from typing import Any

import pytest
import report_values as rv

from triton_magics.model import OpState, Status
from triton_magics.report import LogInput, markdown_log
from triton_magics.report.checklist import checklist

EMPTY = LogInput(facts=rv.FACTS, state=rv.op_state(0))


def unmet(given: LogInput) -> list[str]:
    return [item.text for item in checklist(given) if not item.done]


def test_the_checklist_is_met_by_a_finished_op() -> None:
    assert unmet(rv.log_input(3)) == []
    assert "✓ 10 of 10 points are met" in markdown_log(rv.log_input(3))


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"plan": "quick"}, "Phase 3: checked on a GPU, with the full plan"),
        ({"environment": rv.CPU}, "Phase 3: checked on a GPU, with the full plan"),
        ({"badges": ("loosened tolerance",)}, "Phase 3: no tolerance was loosened"),
        ({"status": Status.FAILED}, "Phase 3: every version is right"),
    ],
)
def test_one_point_fails_for_one_reason(changes: dict[str, Any], wanted: str) -> None:
    given = rv.log_input(3)
    last = given.versions[2]
    verdict = last.validations[-1].model_copy(update=changes)
    versions = (*given.versions[:2], dataclasses.replace(last, validations=(verdict,)))
    given = dataclasses.replace(given, versions=versions)
    assert unmet(given) == [wanted]
    assert "— not v3" in markdown_log(given)


def test_other_points_of_the_checklist() -> None:
    assert unmet(rv.log_input(2)) == ["Phase 2: at least 3 versions were written"]
    assert unmet(rv.log_input(3, best=None)) == ["Phase 4: a version was chosen"]
    assert unmet(rv.log_input(3, best=rv.best(provisional="x"))) == [
        "Phase 4: a version was chosen"
    ]
    assert unmet(rv.log_input(3, notes=("forced: in a hurry",))) == ["nothing was forced"]
    start: OpState = rv.op_state(3, state="start")
    assert unmet(rv.log_input(3, state=start)) == ["Phase 1: the references were shown"]
    assert len(unmet(EMPTY)) == 8


def test_too_few_runs_do_not_count_as_ten() -> None:
    given = rv.log_input(3)
    assert given.benchmark
    short = tuple(
        t.model_copy(update={"samples_us": t.samples_us[:9]}) if t.provider == "v2_tiling" else t
        for t in given.benchmark.timings
    )
    measured = given.benchmark.model_copy(update={"timings": short})
    versions = tuple(dataclasses.replace(v, benchmark=measured) for v in given.versions)
    assert unmet(dataclasses.replace(given, versions=versions)) == [
        "Phase 3: 10 runs at small, medium and large"
    ]
