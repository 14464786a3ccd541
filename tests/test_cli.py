"""The command line: text or JSON, and an exit code that says how it ended."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import report_values
from tests.fake_executor import FakeExecutor
from triton_magics import cli, verbs
from triton_magics.cli import quickstart
from triton_magics.errors import BadValue, Unavailable, WorkerError
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.model import Status, Validation
from triton_magics.rendering import to_text, view
from triton_magics.rendering.blocks import Details, Document, Line
from triton_magics.verbs._phrase import as_command

SOURCE = "def triton_softmax(x):\n    return x\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    """Return an engine that answers at once."""
    scripted = FakeExecutor()
    monkeypatch.setattr(
        "triton_magics.execution.registry.LocalExecutor", lambda _settings: scripted
    )
    return scripted


@pytest.fixture
def run(tmp_path: Path, engine: FakeExecutor, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in the workspace; exit code, output, errors."""

    def command(*words: str) -> tuple[int, str, str]:
        code = cli.main([*words, "--workspace", str(tmp_path)])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def written(tmp_path: Path, engine: FakeExecutor) -> str:
    """A workspace with one version; its sha256."""
    with Lab(tmp_path, engine=engine) as lab:
        lab.op("softmax")
        return lab.write("softmax", "v1", SOURCE).source.sha256


def test_verdict_that_passed_ends_with_0(run: Run, written: str) -> None:
    code, out, _ = run("validate", "softmax", "v1")
    assert code == 0
    assert out.startswith("✓ RIGHT")


@pytest.mark.parametrize(("columns", "most"), [("80", 80), ("72", 72), ("200", 100)])
def test_text_is_as_wide_as_the_terminal(
    run: Run, written: str, monkeypatch: pytest.MonkeyPatch, columns: str, most: int
) -> None:
    run("validate", "softmax", "v1")
    monkeypatch.setenv("COLUMNS", columns)
    _, out, _ = run("op", "softmax")
    widths = [len(line) for line in out.splitlines() if "://" not in line]
    assert most - 20 < max(widths) <= most


def test_verdict_that_failed_ends_with_1(run: Run, written: str, engine: FakeExecutor) -> None:
    engine.verdicts[written] = Status.FAILED
    code, out, _ = run("validate", "softmax", "v1")
    assert code == 1
    assert out.startswith("✗ WRONG")


def test_user_error_ends_with_2(run: Run) -> None:
    code, out, err = run("op", "sofmax")
    assert (code, out) == (2, "")
    assert err.startswith("UnknownOp: unknown op 'sofmax'. Did you mean 'softmax'?")


@pytest.mark.parametrize("folder", ["no/such/folder", "a_file"])
def test_impossible_workspace_is_a_user_error(
    folder: str, tmp_path: Path, engine: FakeExecutor, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a_file").write_text("")
    assert cli.main(["status", "--workspace", str(tmp_path / folder)]) == 2
    assert capsys.readouterr().err.startswith("BadValue: ")


def test_worker_error_ends_with_3(run: Run, written: str, engine: FakeExecutor) -> None:
    def dies(_job: object) -> Outcome:
        raise WorkerError("no worker can be started")

    engine.answer = dies
    code, _, err = run("validate", "softmax", "v1")
    assert code == 3
    assert err.endswith("WorkerError: no worker can be started\n")


def test_interrupt_ends_with_130_and_shows_partial_results(
    run: Run, written: str, engine: FakeExecutor
) -> None:
    engine.answer = lambda _: Outcome(status="interrupted", detail="interrupted while small")
    code, out, _ = run("validate", "softmax", "v1")
    assert code == 130
    assert "INTERRUPTED" in out


def test_json_prints_only_the_value(run: Run, written: str) -> None:
    code, out, _ = run("validate", "softmax", "v1", "--seed", "7", "--json")
    fields = json.loads(out)
    del fields["schema_version"], fields["derived"]
    value = Validation.model_validate(fields, strict=False)
    assert (code, value.seed, value.version) == (0, 7, "v1_baseline")


def test_json_option_prints_errors_as_json(run: Run) -> None:
    code, out, err = run("op", "sofmax", "--json")
    assert (code, err) == (2, "")
    assert json.loads(out)["type"] == "UnknownOp"


def test_showing_a_failed_verdict_ends_with_0(run: Run, written: str, engine: FakeExecutor) -> None:
    engine.verdicts[written] = Status.FAILED
    run("validate", "softmax", "v1")
    assert run("status", "softmax")[0] == 0


def test_version_is_written_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SOURCE)
    code, out, _ = run("write", "softmax", "v1", str(file), "--no-compile", "--json")
    source = json.loads(out)["source"]
    assert (code, source["source"], source["cell_offset"]) == (0, SOURCE, 0)


def test_version_is_written_from_the_pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SOURCE))
    code, out, _ = run("write", "softmax", "v1", "-", "--json")
    assert (code, json.loads(out)["source"]["source"]) == (0, SOURCE)


def test_missing_file_is_a_user_error(run: Run) -> None:
    code, _, err = run("write", "softmax", "v1", "no_such.py")
    assert code == 2
    assert err.endswith("BadValue: no_such.py can't be read: No such file or directory\n")


def test_notes_go_to_stderr(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    _, out, err = run("write", "softmax", "v1", str(tmp_path / "mine.py"))
    assert err.startswith("! softmax: references not shown yet.")
    assert err.rstrip().endswith("Next: triton-magics op softmax")
    assert "not shown yet" not in out


def test_export_names_its_files(run: Run, written: str, tmp_path: Path) -> None:
    code, out, _ = run("export", "softmax")
    assert code == 0
    assert "logs/softmax_log.md" in out
    assert (tmp_path / "logs" / "softmax_log.md").is_file()


def test_options_reach_the_benchmark(run: Run, written: str, engine: FakeExecutor) -> None:
    run("validate", "softmax", "v1")
    assert run("bench", "softmax", "--sizes", "large,small", "--runs", "3", "--hot")[0] == 0
    job = engine.jobs[-1]
    assert (job.sizes, job.runs, job.cold) == (("small", "large"), 3, False)


@pytest.mark.parametrize("verb", verbs.every(), ids=lambda verb: verb.name)
def test_every_verb_is_a_command_with_help(verb: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([verb.command.split()[-1], "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {verb.command} ")


@pytest.mark.parametrize("words", [["benhc"], ["diff"], ["bench", "softmax", "--sizs", "x"]])
def test_bad_arguments_end_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert "usage: triton-magics" in capsys.readouterr().err


def test_misspelt_command_or_flag_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    message = []
    for words in (["benhc"], ["bench", "softmax", "--sizs", "x"], ["op", "softmax", "--x"]):
        with pytest.raises(SystemExit):
            cli.main(words)
        message.append(capsys.readouterr().err)
    assert "no command 'benhc'. Did you mean 'bench'? triton-magics --help lists them" in message[0]
    assert "usage: triton-magics bench" in message[1]
    assert "unrecognized arguments: --sizs x. Did you mean '--sizes'?" in message[1]
    assert message[2].endswith("unrecognized arguments: --x.\n")


def test_list_of_topics_names_the_command_that_reads_one(run: Run) -> None:
    assert "next: triton-magics ref TOPIC shows one" in run("ref")[1]


def test_plot_in_a_terminal_names_the_option_that_writes_it(
    run: Run, written: str, tmp_path: Path
) -> None:
    run("validate", "softmax", "v1")
    run("bench", "softmax")
    _, out, _ = run("plot", "softmax", "times")
    assert "next: triton-magics plot softmax times --to softmax_times.png writes the file" in out
    _, out, _ = run("plot", "softmax", "times", "--to", str(tmp_path / "p.png"))
    assert "writes it" not in out


def test_bench_requires_an_op_or_selftest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) != 0
    message = "name the op, or add --selftest. Next: triton-magics bench softmax"
    assert message in capsys.readouterr().err


def test_selftest_times_no_op(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "softmax", "v1", "--selftest"]) == 2
    assert "--selftest takes no op: leave out softmax" in capsys.readouterr().err


# ------------------------------------------------------------------------------- its own words


def test_next_step_is_a_command(run: Run, written: str, engine: FakeExecutor) -> None:
    engine.verdicts[written] = Status.FAILED
    _, out, _ = run("validate", "softmax", "v1")
    assert "next: fix the code and write it again (attempt 2)" in out
    assert "triton-magics kernel softmax v1 FILE" in run("status", "softmax")[1]


def test_refusal_names_the_command_that_comes_first(run: Run, written: str) -> None:
    code, _, err = run("bench", "softmax", "v1")
    assert code == 2
    assert err.rstrip().endswith("Next: triton-magics validate softmax v1")
    assert json.loads(run("bench", "softmax", "v1", "--json")[1])["next_step"] == {
        "verb": "validate",
        "arguments": {"op": "softmax", "version": "v1"},
    }


def test_a_byte_order_mark_is_no_part_of_the_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8-sig")
    code, out, _ = run("write", "softmax", "v1", str(tmp_path / "mine.py"), "--json")
    assert code == 0
    assert json.loads(out)["source"]["source"] == SOURCE


def test_template_is_a_file_and_not_a_cell(run: Run) -> None:
    _, out, _ = run("template", "fused", "softmax", "v1")
    assert "%%" not in out
    assert "def triton_softmax(" in out


def test_template_file_is_a_valid_version(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    code, out, _ = run("template", "fused", "softmax", "v1", "--to", str(file))
    assert code == 0
    assert "next: edit it, then triton-magics kernel softmax v1 FILE" in out
    code, out, _ = run("write", "softmax", "v1", str(file), "--json")
    assert (code, json.loads(out)["source"]["source"]) == (0, file.read_text())


def test_template_overwrites_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("my work")
    code, _, err = run("template", "fused", "softmax", "v1", "--to", str(file))
    assert (code, file.read_text()) == (2, "my work")
    assert f"{file} exists: name another file" in err
    assert run("template", "fused", "softmax", "v1", "--to", "no/such/folder.py")[0] == 2


@pytest.mark.parametrize("name", report_values.every_value())
def test_every_value_names_valid_commands(name: str) -> None:
    document = view(report_values.every_value()[name], as_command)
    text = to_text(document)
    assert not re.search(r"%triton_|%config|the cell\b", text)
    for command in _commands(document):
        assert cli._parser().parse_args(shlex.split(command)[1:])


def _commands(document: Document) -> Iterator[str]:
    """Return each command that the page marks as code."""
    for block in document:
        if isinstance(block, Details):
            yield from _commands(block.blocks)
        marked = (
            re.findall(r"`(triton-magics [^`]+)`", block.text) if isinstance(block, Line) else []
        )
        yield from (command for command in marked if "…" not in command)


def test_details_option_shows_all_details(run: Run) -> None:
    folded = r"folded: techniques \(\d+ lines\); --details shows them"
    assert re.search(folded, run("op", "softmax")[1])
    whole = run("op", "softmax", "--details")[1]
    assert "folded" not in whole
    assert len(whole.splitlines()) > 34 + 10


def test_closed_pipe_is_no_error(tmp_path: Path) -> None:
    script = f"{sys.executable} -m triton_magics ref overview --workspace {tmp_path} | true"
    ran = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_name_of_the_magic_is_a_command(run: Run) -> None:
    assert run("log", "softmax")[1] == run("export", "softmax")[1]


# --------------------------------------------------------------------------------- quickstart


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with two notebooks."""
    folder = tmp_path / "installed"
    folder.mkdir()
    for name in ("gelu.ipynb", "quickstart.ipynb"):
        (folder / name).write_text(name)
    monkeypatch.setattr(quickstart, "_NOTEBOOKS", (tmp_path / "no_wheel", folder))
    return folder


def test_quickstart_copies_the_notebooks(
    notebooks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "new" / "place"
    assert cli.main(["quickstart", str(there)]) == 0
    assert sorted(p.name for p in there.iterdir()) == ["gelu.ipynb", "quickstart.ipynb"]
    assert f"next: jupyter lab {there / 'quickstart.ipynb'}" in capsys.readouterr().out


def test_quickstart_overwrites_nothing_unless_forced(notebooks: Path, tmp_path: Path) -> None:
    (tmp_path / "quickstart.ipynb").write_text("my work")
    with pytest.raises(BadValue, match="quickstart.ipynb. --force overwrites"):
        quickstart.copy_notebooks(tmp_path)
    assert (tmp_path / "quickstart.ipynb").read_text() == "my work"
    assert not (tmp_path / "gelu.ipynb").exists()
    quickstart.copy_notebooks(tmp_path, force=True)
    assert (tmp_path / "quickstart.ipynb").read_text() == "quickstart.ipynb"


def test_quickstart_into_a_file_is_a_user_error(notebooks: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["quickstart", str(tmp_path / "file")]) == 2


def test_quickstart_without_notebooks_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        quickstart, "_NOTEBOOKS", (tmp_path / "no_wheel", tmp_path / "no_repository")
    )
    with pytest.raises(Unavailable, match="no notebooks"):
        quickstart.copy_notebooks(tmp_path)
