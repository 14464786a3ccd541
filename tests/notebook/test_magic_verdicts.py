"""Display of a failed verdict, an interrupt, and a step out of order."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.fake_executor import FakeExecutor
from tests.notebook.shells import Shell
from triton_magics.errors import IllegalStep, KernelFailure
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.model import Status, Validation


def fails(engine: FakeExecutor, lab: Lab, version: str = "v1") -> None:
    """Make the version's validation fail from now on."""
    engine.verdicts[lab.source("softmax", version).sha256] = Status.FAILED


def interrupts(job: Any) -> Outcome:
    return Outcome(status="interrupted", detail="interrupted while small 256x256 float32")


def test_a_failed_verdict_is_shown_bound_and_raised(
    shell: Shell, lab: Lab, engine: FakeExecutor
) -> None:
    shell.write("v1")
    fails(engine, lab)
    cell = shell("%triton_validate softmax v1 -o verdict")
    assert isinstance(cell.error, KernelFailure)
    assert cell.error.value is lab.last is shell.shell.user_ns["verdict"]
    assert "WRONG" in cell.shown()
    assert "text/html" in cell.outputs[0]
    assert not any(".py" in line and "triton_magics" in line for line in cell.lines)


@pytest.mark.parametrize("in_notebook", [False, True])
def test_a_failure_is_explained_once_and_its_error_is_one_line(
    shell: Shell, lab: Lab, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch, in_notebook: bool
) -> None:
    shell.write("v1")
    fails(engine, lab)
    if in_notebook:
        monkeypatch.setattr(InteractiveShell, "kernel", object(), raising=False)
    cell = shell("%triton_validate softmax v1")
    assert cell.shown().count("✗ WRONG") == 1
    (line,) = cell.lines
    assert line.startswith("KernelFailure: ✗ WRONG softmax v1")
    assert line.endswith(", see above")


def test_a_quiet_failure_still_fails_the_cell(shell: Shell, lab: Lab, engine: FakeExecutor) -> None:
    shell.write("v1")
    fails(engine, lab)
    cell = shell("%triton_validate softmax v1 -q")
    assert isinstance(cell.error, KernelFailure)
    assert cell.lines[0].startswith("✗ WRONG")
    assert cell.outputs == []


def test_no_raise_lets_the_cell_pass_with_its_value(
    shell: Shell, lab: Lab, engine: FakeExecutor
) -> None:
    shell.write("v1")
    fails(engine, lab)
    cell = shell("x = %triton_validate softmax v1 --no-raise")
    assert cell.error is None
    assert shell.shell.user_ns["x"].status is Status.FAILED


def test_one_wrong_version_of_all_fails_the_cell(
    shell: Shell, lab: Lab, engine: FakeExecutor
) -> None:
    for version in ("v1", "v2"):
        shell.write(version)
    fails(engine, lab, "v2")
    cell = shell("%triton_validate softmax all")
    assert isinstance(cell.error, KernelFailure)
    assert [v.passed for v in cell.error.value.validations] == [True, False]


@pytest.mark.parametrize("options", ["", "--no-raise"])
def test_an_interrupt_shows_what_is_known_and_fails_the_cell(
    shell: Shell, engine: FakeExecutor, options: str
) -> None:
    shell.write("v1")
    engine.answer = interrupts
    cell = shell(f"%triton_validate softmax v1 {options}")
    assert isinstance(cell.error, KernelFailure)
    assert cell.error.value.status is Status.INTERRUPTED
    assert "INTERRUPTED" in cell.shown()


def test_an_interrupt_before_anything_is_known_is_one_line(
    shell: Shell, engine: FakeExecutor
) -> None:
    def raise_interrupt(_job: object) -> Outcome:
        raise KeyboardInterrupt

    shell.write("v1")
    engine.answer = raise_interrupt
    cell = shell("%triton_validate softmax v1")
    assert type(cell.error) is KeyboardInterrupt
    assert cell.lines == ["KeyboardInterrupt: stopped; completed work is saved"]


def test_an_interrupt_between_two_versions_is_no_verdict(
    shell: Shell, lab: Lab, engine: FakeExecutor
) -> None:
    def raise_interrupt(_job: object) -> Outcome:
        raise KeyboardInterrupt

    shell.write("v1")
    shell.write("v2")
    lab.on_change.append(lambda _: setattr(engine, "answer", raise_interrupt))
    cell = shell("%triton_validate softmax all")
    assert isinstance(lab.last, Validation)
    assert lab.last.passed
    assert type(cell.error) is KeyboardInterrupt


def test_a_step_out_of_order_is_noted_once(shell: Shell) -> None:
    notes = [cell.shown() for cell in (shell.write("v1"), shell("%triton_validate softmax v1"))]
    assert "references not shown yet" in notes[0]
    assert "references not shown yet" not in notes[1]


def test_strict_makes_a_step_out_of_order_an_error(shell: Shell) -> None:
    shell("%config TritonMagics.strict = True")
    assert type(shell.write("v1").error) is IllegalStep
