"""The command line beside uv, gh and ruff: JSON figures, exit codes, colours, completion."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import report_values
from tests.fake_executor import FakeExecutor
from triton_magics import cli
from triton_magics.cli.shell_completion import SCRIPTS, completions
from triton_magics.lab import Lab
from triton_magics.model import Diagnosis, Finding
from triton_magics.rendering.render_json import SCHEMA_VERSION, compute_derived, json_object
from triton_magics.rendering.terminal_colors import color_verdicts

SOURCE = "def triton_softmax(x):\n    return x\n"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    """Return an engine that answers at once."""
    scripted = FakeExecutor()
    monkeypatch.setattr(
        "triton_magics.execution.registry.LocalExecutor", lambda _settings: scripted
    )
    return scripted


@pytest.fixture
def workspace(tmp_path: Path, engine: FakeExecutor) -> Path:
    """A workspace with two versions of softmax."""
    with Lab(tmp_path, engine=engine) as lab:
        lab.op("softmax")
        lab.kernel("softmax", "v1", SOURCE)
        lab.kernel("softmax", "v5_mine", SOURCE + "# another\n")
    return tmp_path


@pytest.fixture
def call(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls the program with words as they are; exit code, output, errors."""

    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main([word.replace("HERE", str(workspace)) for word in words])
        return code, *capsys.readouterr()

    return run


# ----------------------------------------------------------------------------------------- JSON


def test_json_has_the_derived_figures_of_a_benchmark() -> None:
    value = report_values.benchmark()
    figures = json.loads(json.dumps(json_object(value)))["derived"]
    assert figures["passed"] is value.passed
    assert figures["fastest"] == value.fastest
    for name in value.providers:
        own = figures["providers"][name]
        assert own["final_us"] == value.final_us(name)
        assert own["speedup"] == value.speedup(name)
        for size in value.sizes:
            timing = value.timing(name, size)
            if timing is not None:
                assert own["sizes"][size]["mean_us"] == timing.mean_us
                assert own["sizes"][size]["gbps"] == timing.gbps


def test_json_counts_the_cases_of_a_validation(call: Call) -> None:
    code, out, _ = call("validate", "softmax", "v1", "--json", "--workspace", "HERE")
    value = json.loads(out)
    assert (code, value["schema_version"], value["status"]) == (0, SCHEMA_VERSION, "passed")
    assert value["derived"]["passed"] is True
    assert value["derived"]["cases_run"] == value["derived"]["cases_passed"] > 0


@pytest.mark.parametrize("name", report_values.every_value())
def test_json_of_every_value_is_an_object_with_its_schema(name: str) -> None:
    value = report_values.every_value()[name]
    text = json.dumps(json_object(value), allow_nan=False)
    assert json.loads(text)["schema_version"] == SCHEMA_VERSION


def test_json_of_a_list_and_of_numbers_that_json_lacks() -> None:
    assert json_object(("v1", "v2")) == {"schema_version": 1, "items": ["v1", "v2"]}
    assert json_object({"worst": math.inf})["worst"] == "Infinity"


def test_json_alone_is_on_standard_output(call: Call) -> None:
    _, out, err = call("status", "softmax", "--json", "--workspace", "HERE")
    assert json.loads(out)["next_step"]["verb"] == "validate"
    assert "{" not in err
    code, out, err = call("op", "sofmax", "--json", "--workspace", "HERE")
    assert (code, json.loads(out)["schema_version"], err) == (2, SCHEMA_VERSION, "")


# ----------------------------------------------------------------------- exit codes, flags, help


@pytest.mark.parametrize(("state", "code"), [("good", 0), ("warn", 0), ("bad", 1)])
def test_doctor_fails_where_work_stops(
    state: str, code: int, call: Call, engine: FakeExecutor
) -> None:
    engine.examine = lambda _ops: [Finding(subject="torch", state=state, detail="is missing")]  # type: ignore[method-assign]
    assert call("doctor", "--workspace", "HERE")[0] == code
    value = json.loads(call("--json", "doctor", "--workspace", "HERE")[1])
    assert value["derived"]["passed"] is (code == 0)


def test_diagnosis_derives_its_worst_state() -> None:
    bad = Finding(subject="torch", state="bad", detail="is missing")
    figures = compute_derived(Diagnosis(findings=(bad,)))
    assert figures == {"worst": "bad", "n_problems": 1, "passed": False}


def test_flags_stand_before_or_behind_the_command(call: Call) -> None:
    behind = call("versions", "softmax", "--json", "--workspace", "HERE")
    before = call("--workspace", "HERE", "--json", "versions", "softmax")
    assert before == behind
    assert json.loads(before[1])["items"] == ["v1_baseline", "v5_mine"]


def test_flag_behind_the_command_decides(call: Call, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    words = ("--workspace", str(other), "versions", "softmax", "--workspace", "HERE")
    assert "v5_mine" in call(*words)[1]


def test_no_words_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: triton-magics ")
    assert "exit codes:\n  0 success" in text
    assert "NO_COLOR" in text


def test_help_shows_defaults_and_a_whole_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "timed runs at each size (default: 10)" in text
    assert "(default: gated)" in text
    assert "example: triton-magics bench softmax v1 v2 --sizes medium,large" in text


def test_version_has_a_short_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["-V"])
    assert ended.value.code == 0
    assert re.fullmatch(r"triton-magics \d+\.\d+.*\n", capsys.readouterr().out)


# -------------------------------------------------------------------------------------- colours


def test_verdicts_are_coloured() -> None:
    assert color_verdicts("✗ WRONG  softmax v1") == "\x1b[1;31m✗ WRONG\x1b[0m  softmax v1"
    assert color_verdicts("✓ in time") == "\x1b[32m✓\x1b[0m in time"
    assert color_verdicts("a ✗ b") == "a ✗ b"


@pytest.mark.parametrize(
    ("variables", "colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_no_color_is_obeyed(
    variables: dict[str, str], colored: bool, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out = call("validate", "softmax", "v1", "--workspace", "HERE")[1]
    assert ("\x1b[" in out) is colored
    assert "\x1b[" not in call("validate", "softmax", "v1", "--json", "--workspace", "HERE")[1]


# ----------------------------------------------------------------------------------- completion


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["val"], ["validate"]),
        (["completion", "z"], ["zsh"]),
        (["validate", "softm"], ["softmax"]),
        (["--workspace", "HERE", "run", "softmax", ""], ["v1", "v5_mine"]),
        (["bench", "softmax", "--sizes", "small,me", "--workspace", "HERE"], []),
        (["--workspace", "HERE", "bench", "softmax", "--sizes", "small,me"], ["small,medium"]),
        (["bench", "--tim"], ["--timer", "--timeout"]),
        (["--js"], ["--json"]),
        (["bench", "--workspace", ""], []),
        (["serve", ""], []),
        (["--workspace", "HERE/nothing/here", "run", "softmax", ""], []),
    ],
)
def test_words_are_completed(words: list[str], expected: list[str], call: Call) -> None:
    assert call("__complete", *words)[1].split() == expected


def test_completion_makes_no_workspace(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert call("__complete", "validate", "softm")[1].split() == ["softmax"]
    assert list(folder.iterdir()) == []


def test_completion_starts_no_worker(call: Call, engine: FakeExecutor) -> None:
    engine.jobs.clear()
    assert "v1" in call("__complete", "--workspace", "HERE", "run", "softmax", "")[1]
    assert not engine.jobs


def test_nothing_typed_completes_every_command() -> None:
    assert {"validate", "serve"} <= set(completions([""], ("serve",), (), lambda _name: ()))


@pytest.mark.parametrize("shell", SCRIPTS)
def test_script_is_valid_in_its_shell(shell: str, call: Call, tmp_path: Path) -> None:
    code, out, _ = call("completion", shell)
    assert code == 0
    assert "triton-magics __complete" in out
    program = shutil.which(shell)
    if program:
        file = tmp_path / "script"
        file.write_text(out)
        subprocess.run([program, "-n", str(file)], check=True)


def test_bash_completes_a_command(tmp_path: Path) -> None:
    program = tmp_path / "triton-magics"
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "got:$word"; done\n')
    program.chmod(0o755)
    script = f"""PATH={tmp_path}:$PATH
{SCRIPTS["bash"]}
COMP_WORDS=(triton-magics run softmax ""); COMP_CWORD=3
_triton_magics; printf '%s\\n' "${{COMPREPLY[@]}}\""""
    ran = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["got:__complete", "got:run", "got:softmax", "got:"]
