# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The corrected line that a verdict names, written into the version's code."""

from __future__ import annotations

from typing import Any

import pytest
import report_values as rv

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.model import Cause, CauseCode, Status
from triton_magics.rendering import to_text, view
from triton_magics.verbs._phrase import as_command
from triton_magics.verbs.fix import corrected_source

LOAD = "x = tl.load(x_ptr + row * stride + cols, mask=mask)"
ADVICE = LOAD.replace("mask=mask", 'mask=mask, other=-float("inf")')
BROKEN = rv.SOURCE.replace(', other=-float("inf")', "")


def cause_at(line: int | None, advice: str | None = ADVICE) -> Cause:
    return Cause(code=CauseCode.WRONG_FILL, file_line=line, advice=advice)


def judge_wrong(lab: Lab, engine: FakeExecutor, cause: Cause | None) -> None:
    """Write the broken version; its validation fails with a cause."""
    lab.write("softmax", "v1", BROKEN, cell_offset=1)
    case = rv.wrong_case(mismatch=rv.mismatch(cause=cause))

    def answer(job: Any) -> Outcome:
        passed = engine._validation(job)
        failed = passed.evolve(status=Status.FAILED, cases=(*passed.cases[1:], case))
        return Outcome(status="finished", answer=failed)

    engine.answer = answer
    lab.validate("softmax", "v1")


def line_of_load(lab: Lab) -> int:
    text = (lab.path / lab.source("softmax", "v1").path).read_text()
    return next(n for n, line in enumerate(text.splitlines(), 1) if LOAD in line)


def test_fix_gives_the_code_with_the_corrected_line(lab: Lab, engine: FakeExecutor) -> None:
    lab.write("softmax", "v1", BROKEN, cell_offset=1)
    judge_wrong(lab, engine, cause_at(line_of_load(lab)))
    correction = lab.fix("softmax", "v1")
    assert correction.text == BROKEN.replace(LOAD, ADVICE)
    assert lab.source("softmax", "v1").source == BROKEN


def test_fix_without_a_verdict_names_the_next_step(lab: Lab) -> None:
    lab.write("softmax", "v1", BROKEN, cell_offset=1)
    with pytest.raises(BadValue, match="no verdict") as raised:
        lab.fix("softmax", "v1")
    assert raised.value.next_step is not None
    assert raised.value.next_step.verb == "validate"


@pytest.mark.parametrize("cause", [None, cause_at(None), cause_at(3, None), cause_at(999)])
def test_fix_without_a_corrected_line_says_so(
    lab: Lab, engine: FakeExecutor, cause: Cause | None
) -> None:
    judge_wrong(lab, engine, cause)
    with pytest.raises(BadValue, match="names no line"):
        lab.fix("softmax", "v1")


@pytest.mark.parametrize("advice", ["use tl.atomic_add here", "x = tl.load(", LOAD])
def test_advice_that_gives_no_other_valid_code_is_no_correction(advice: str) -> None:
    source = rv.source(code=BROKEN)
    line = next(n for n, text in enumerate(BROKEN.splitlines(), 1) if LOAD in text)
    assert corrected_source(source, line + source.header_lines, advice) is None


def test_fix_corrects_the_line_of_a_compile_error(lab: Lab, engine: FakeExecutor) -> None:
    misspelt = rv.SOURCE.replace("tl.exp(", "tl.expp(")
    at = next(n for n, text in enumerate(misspelt.splitlines(), 1) if "tl.expp(" in text)
    code = misspelt.splitlines()[at - 1]

    def refuse(advice: str | None) -> None:
        error = rv.compile_error(file_line=at + 2, code=code, advice=advice)
        engine.compile_error = error
        lab.write("softmax", "v1", f"{misspelt}# {advice}\n", cell_offset=1)

    refuse(code.replace("expp", "exp"))
    correction = lab.fix("softmax", "v1")
    assert correction.text.startswith(rv.SOURCE)
    refuse(None)
    with pytest.raises(BadValue, match="error of its compilation names no line"):
        lab.fix("softmax", "v1")


def test_fix_saves_the_corrected_code_with_write(lab: Lab, engine: FakeExecutor) -> None:
    lab.write("softmax", "v1", BROKEN, cell_offset=1)
    judge_wrong(lab, engine, cause_at(line_of_load(lab)))
    correction = lab.fix("softmax", "v1", write=True)
    saved = lab.source("softmax", "v1")
    assert correction.written is not None
    assert correction.written.source == saved
    assert (saved.attempt, saved.source) == (2, BROKEN.replace(LOAD, ADVICE))
    assert saved.cell_offset == 1
    shown = to_text(view(correction, as_command))
    assert "softmax v1 saved · kernels/softmax/v1_baseline.py · attempt 2" in shown
    assert "next: triton-magics validate softmax v1" in shown


def test_a_correction_says_how_to_save_it(lab: Lab, engine: FakeExecutor) -> None:
    lab.write("softmax", "v1", BROKEN, cell_offset=1)
    judge_wrong(lab, engine, cause_at(line_of_load(lab)))
    shown = to_text(view(lab.fix("softmax", "v1"), as_command))
    assert "not saved" in shown
    assert "next: triton-magics fix softmax v1 --write saves it as attempt 2" in shown
