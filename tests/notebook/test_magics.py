"""Value of a magic: shown once, assigned or silenced; and the output of a kernel."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from tests.fake_executor import FakeExecutor
from tests.notebook.shells import KERNEL, Shell
from triton_magics.lab import Lab
from triton_magics.model import Validation
from triton_magics.notebook.display import template_cell


def test_a_line_magic_can_be_assigned(shell: Shell) -> None:
    shell.write("v1")
    cell = shell("x = %triton_validate softmax v1")
    assert cell.outputs == []
    value = shell.shell.user_ns["x"]
    assert isinstance(value, Validation)
    assert value.version == "v1_baseline"


def test_the_value_is_shown_once_as_the_cells_result(shell: Shell) -> None:
    shell.write("v1")
    cell = shell("%triton_validate softmax v1")
    assert isinstance(cell.value, Validation)
    assert cell.shown().count("RIGHT") == 1
    assert set(cell.outputs[0]) == {"text/plain", "text/markdown", "text/html"}


DISCARDED = [
    "for v in ('v1', 'v2'):\n    %triton_run softmax {v}",
    "%triton_run softmax v1\n%triton_run softmax v2",
    "def both():\n    for v in ('v1', 'v2'):\n        %triton_run softmax $v\nboth()",
]


@pytest.mark.parametrize("code", DISCARDED)
def test_a_value_that_the_cell_drops_is_shown(shell: Shell, code: str) -> None:
    shell.write("v1")
    shell.write("v2")
    assert shell(code).shown().count("RAN") == 2


@pytest.mark.parametrize("code", ["x = %triton_run softmax v1\n1", "%triton_run softmax v1;\n1"])
def test_an_assigned_or_silenced_value_is_not_shown(shell: Shell, code: str) -> None:
    shell.write("v1")
    assert "RAN" not in shell(code).shown()


@pytest.mark.parametrize("line", ["%triton_validate softmax v1 -q", "%triton_validate softmax v1;"])
def test_quiet_and_a_semicolon_show_nothing_but_do_the_work(
    shell: Shell, lab: Lab, line: str
) -> None:
    shell.write("v1")
    cell = shell(line)
    assert (cell.value, cell.outputs, cell.error) == (None, [], None)
    assert isinstance(lab.last, Validation)


@pytest.mark.parametrize("line", ["%triton_validate softmax v1 -q", "%triton_validate softmax v1;"])
def test_a_silenced_value_can_be_assigned(shell: Shell, line: str) -> None:
    shell.write("v1")
    cell = shell(f"x = {line}\nx.status")
    assert cell.value == "passed"
    assert len(cell.outputs) == 1  # of the last line


def test_an_open_bracket_is_a_word_like_any_other(shell: Shell) -> None:
    cell = shell("%triton_ref tl.dot(")
    assert cell.error is None
    assert cell.value.query == "tl.dot("


def test_a_semicolon_silences_a_line_with_a_shape_too(shell: Shell, engine: FakeExecutor) -> None:
    shell.write("v1")
    cell = shell("%triton_validate softmax v1 --shape 257x1023;")
    assert (cell.outputs, cell.error) == ([], None)
    assert engine.jobs[-1].shapes == ((257, 1023),)


def test_out_binds_the_value_of_a_cell_magic(shell: Shell) -> None:
    shell(f"%%triton_kernel softmax v1 -o saved\n{KERNEL}")
    assert shell.shell.user_ns["saved"].source.version == "v1_baseline"


def test_a_name_that_is_none_is_a_usage_error(shell: Shell, engine: FakeExecutor) -> None:
    shell.write("v1")
    before = len(engine.jobs)
    cell = shell("%triton_validate softmax v1 -o 2x")
    assert isinstance(cell.error, UsageError)
    assert len(engine.jobs) == before


def test_an_option_takes_the_value_of_a_variable(shell: Shell, engine: FakeExecutor) -> None:
    shell.write("v1")
    shell("plan, seed = 'quick', 5")
    shell("%triton_validate softmax v1 --cases {plan} --seed {seed}")
    assert (engine.jobs[-1].plan, engine.jobs[-1].seed) == ("quick", 5)
    error = shell("%triton_validate softmax v1 --cases {nowhere}").error
    assert "{nowhere} has no value (NameError: name 'nowhere' is not defined)" in str(error)


def test_plan_shows_the_cases_and_asks_for_no_version(shell: Shell) -> None:
    shell("%triton_op softmax --shape 8x151936")
    cell = shell("%triton_validate softmax --plan --quick --seed 5")
    assert cell.error is None
    assert (cell.value.seed, cell.value.plan) == (5, "quick")
    assert "8x151936" in cell.shown()
    assert "name the version, or add --plan" in str(shell("%triton_validate softmax").error)


def test_a_template_becomes_the_next_cell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    inserted: list[str] = []
    monkeypatch.setattr(shell.shell, "set_next_input", inserted.append)
    value = shell("%triton_template reduction softmax v2").value
    assert inserted == [template_cell(value)]
    assert inserted[0].startswith("%%triton_kernel softmax v2_tiling\n")


@pytest.mark.parametrize(
    "line",
    [
        "%triton_run softmax v1",
        "%triton_validate softmax v1",
        "%triton_validate softmax all",
        "%triton_bench softmax",
        "%triton_ops softmax",
        "%triton_inspect softmax v1",
    ],
)
def test_what_a_kernel_prints_comes_into_the_cell(
    shell: Shell, engine: FakeExecutor, lab: Lab, line: str
) -> None:
    shell.write("v1")
    if "bench" in line:
        shell("%triton_validate softmax v1 -q")
    engine.prints = "the kernel's own words\n"
    texts: list[str] = []
    lab.on_output = texts.append  # of this thread: a magic's takes its place, and gives it back
    cell = shell(line)
    assert "the kernel's own words" in cell.stdout
    assert texts == []
    assert lab.on_output == texts.append
