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
from tests.fake_engine import FakeEngine
from triton_magics import cli
from triton_magics.engine import Outcome
from triton_magics.errors import BadValue, Unavailable, WorkerError
from triton_magics.lab import Lab
from triton_magics.model import Status, Validation
from triton_magics.report import to_text, view
from triton_magics.report.blocks import Details, Document, Line
from triton_magics.report.wording import reworded
from triton_magics.verbs import VERBS, as_commands

SOURCE = "def triton_softmax(x):\n    return x\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """What runs kernels, in place of the one that a Lab makes for itself."""
    made = FakeEngine()
    monkeypatch.setattr("triton_magics.lab.lab.Engine", lambda _settings: made)
    return made


@pytest.fixture
def run(tmp_path: Path, engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in the workspace; exit code, output, errors."""

    def command(*words: str) -> tuple[int, str, str]:
        code = cli.main([*words, "--workspace", str(tmp_path)])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def written(tmp_path: Path, engine: FakeEngine) -> str:
    """A workspace with one version; its sha256."""
    with Lab(tmp_path, engine=engine) as lab:
        lab.op("softmax")
        return lab.write("softmax", "v1", SOURCE).source.sha256


def test_a_verdict_that_passed_ends_with_0(run: Run, written: str) -> None:
    code, out, _ = run("validate", "softmax", "v1")
    assert code == 0
    assert out.startswith("✓ RIGHT")


def test_a_verdict_that_failed_ends_with_1(run: Run, written: str, engine: FakeEngine) -> None:
    engine.verdicts[written] = Status.FAILED
    code, out, _ = run("validate", "softmax", "v1")
    assert code == 1
    assert out.startswith("✗ WRONG")


def test_what_the_user_can_mend_ends_with_2(run: Run) -> None:
    code, out, err = run("op", "sofmax")
    assert (code, out) == (2, "")
    assert err.startswith("UnknownOp: unknown op 'sofmax'. Did you mean 'softmax'?")


@pytest.mark.parametrize("folder", ["no/such/folder", "a_file"])
def test_a_workspace_that_can_not_be_is_the_users_to_mend(
    folder: str, tmp_path: Path, engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a_file").write_text("")
    assert cli.main(["status", "--workspace", str(tmp_path / folder)]) == 2
    assert capsys.readouterr().err.startswith("BadValue: ")


def test_a_fault_of_our_own_ends_with_3(run: Run, written: str, engine: FakeEngine) -> None:
    def dies(_job: object) -> Outcome:
        raise WorkerError("no worker can be started")

    engine.answer = dies
    code, _, err = run("validate", "softmax", "v1")
    assert code == 3
    assert err.endswith("WorkerError: no worker can be started\n")


def test_an_interrupt_ends_with_130_and_shows_what_is_known(
    run: Run, written: str, engine: FakeEngine
) -> None:
    engine.answer = lambda _: Outcome(status="interrupted", detail="interrupted while small")
    code, out, _ = run("validate", "softmax", "v1")
    assert code == 130
    assert "INTERRUPTED" in out


def test_json_is_the_value_and_nothing_else(run: Run, written: str) -> None:
    code, out, _ = run("validate", "softmax", "v1", "--seed", "7", "--json")
    value = Validation.model_validate_json(out)
    assert (code, value.seed, value.version) == (0, 7, "v1_baseline")


def test_an_error_is_json_too_where_json_was_asked_for(run: Run) -> None:
    code, out, err = run("op", "sofmax", "--json")
    assert (code, err) == (2, "")
    assert json.loads(out)["type"] == "UnknownOp"


def test_a_failed_verdict_that_is_only_looked_at_ends_with_0(
    run: Run, written: str, engine: FakeEngine
) -> None:
    engine.verdicts[written] = Status.FAILED
    run("validate", "softmax", "v1")
    assert run("status", "softmax")[0] == 0


def test_a_version_is_written_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SOURCE)
    code, out, _ = run("write", "softmax", "v1", str(file), "--no-compile", "--json")
    source = json.loads(out)["source"]
    assert (code, source["source"], source["cell_offset"]) == (0, SOURCE, 0)


def test_a_version_is_written_from_the_pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SOURCE))
    code, out, _ = run("write", "softmax", "v1", "-", "--json")
    assert (code, json.loads(out)["source"]["source"]) == (0, SOURCE)


def test_a_file_that_is_not_there_is_the_users_to_mend(run: Run) -> None:
    code, _, err = run("write", "softmax", "v1", "no_such.py")
    assert code == 2
    assert err.endswith("BadValue: no_such.py can't be read: No such file or directory\n")


def test_notes_go_to_the_errors(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    _, out, err = run("write", "softmax", "v1", str(tmp_path / "mine.py"))
    assert err.startswith("! softmax is at its start")
    assert "at its start" not in out


def test_an_export_names_its_files(run: Run, written: str, tmp_path: Path) -> None:
    code, out, _ = run("export", "softmax")
    assert code == 0
    assert "logs/softmax_log.md" in out
    assert (tmp_path / "logs" / "softmax_log.md").is_file()


def test_options_reach_the_benchmark(run: Run, written: str, engine: FakeEngine) -> None:
    run("validate", "softmax", "v1")
    assert run("bench", "softmax", "--sizes", "large,small", "--runs", "3", "--hot")[0] == 0
    job = engine.jobs[-1]
    assert (job.sizes, job.runs, job.cold) == (("small", "large"), 3, False)


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_every_verb_is_a_command_with_help(verb: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([verb.name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: triton-magics {verb.name} ")


@pytest.mark.parametrize("words", [[], ["benhc"], ["kernel"], ["bench", "softmax", "--sizs", "x"]])
def test_words_that_do_not_fit_end_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert "usage: triton-magics" in capsys.readouterr().err


def test_a_command_or_flag_that_is_nearly_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in (["benhc"], ["bench", "softmax", "--sizs", "x"], ["op", "softmax", "--x"]):
        with pytest.raises(SystemExit):
            cli.main(words)
        said.append(capsys.readouterr().err)
    assert "no command 'benhc'. Did you mean 'bench'? triton-magics --help lists them" in said[0]
    assert "usage: triton-magics bench" in said[1]
    assert "unrecognized arguments: --sizs x. Did you mean '--sizes'?" in said[1]
    assert said[2].endswith("unrecognized arguments: --x.\n")


def test_a_list_of_topics_says_how_one_is_read(run: Run) -> None:
    assert "next: triton-magics ref TOPIC reads one" in run("ref")[1]


def test_a_picture_that_a_terminal_can_not_show_says_how_it_is_written(
    run: Run, written: str, tmp_path: Path
) -> None:
    run("validate", "softmax", "v1")
    run("bench", "softmax")
    _, out, _ = run("plot", "softmax", "times")
    assert "next: triton-magics plot softmax times --to softmax_times.png writes it" in out
    _, out, _ = run("plot", "softmax", "times", "--to", str(tmp_path / "p.png"))
    assert "writes it" not in out


def test_bench_wants_an_op_or_a_selftest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) != 0
    said = "name an op: triton-magics bench softmax; or add --selftest"
    assert said in capsys.readouterr().err


def test_a_selftest_times_no_op(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "softmax", "v1", "--selftest"]) == 2
    assert "--selftest times kernels of its own, not softmax" in capsys.readouterr().err


# ------------------------------------------------------------------------------- its own words


def test_a_next_step_is_a_command(run: Run, written: str, engine: FakeEngine) -> None:
    engine.verdicts[written] = Status.FAILED
    _, out, _ = run("validate", "softmax", "v1")
    assert "next: mend the file and write it again; it becomes attempt 2" in out
    assert "triton-magics write softmax v1 FILE" in run("status", "softmax")[1]


def test_a_refusal_names_the_command_that_comes_first(run: Run, written: str) -> None:
    code, _, err = run("bench", "softmax", "v1")
    assert code == 2
    assert err.rstrip().endswith("Next: triton-magics validate softmax v1")
    assert (
        "triton-magics validate"
        in json.loads(run("bench", "softmax", "v1", "--json")[1])["message"]
    )


def test_a_note_names_commands(run: Run, written: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    _, _, err = run("write", "softmax", "v2", str(tmp_path / "mine.py"))
    assert "triton-magics status softmax --force-write REASON goes on without it" in err


def test_a_template_is_a_file_and_not_a_cell(run: Run) -> None:
    _, out, _ = run("template", "fused", "softmax", "v1")
    assert "%%" not in out
    assert "def triton_softmax(" in out


def test_a_template_becomes_a_file_that_can_be_written_as_it_is(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    code, out, _ = run("template", "fused", "softmax", "v1", "--to", str(file))
    assert code == 0
    assert "next: edit it, then triton-magics write softmax v1 FILE" in out
    code, out, _ = run("write", "softmax", "v1", str(file), "--json")
    assert (code, json.loads(out)["source"]["source"]) == (0, file.read_text())


def test_a_template_overwrites_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("my work")
    code, _, err = run("template", "fused", "softmax", "v1", "--to", str(file))
    assert (code, file.read_text()) == (2, "my work")
    assert f"{file} is there already: name another" in err
    assert run("template", "fused", "softmax", "v1", "--to", "no/such/folder.py")[0] == 2


@pytest.mark.parametrize("name", report_values.every_value())
def test_every_value_is_told_in_commands_that_can_be_given(name: str) -> None:
    document = reworded(view(report_values.every_value()[name]), as_commands)
    text = to_text(document)
    assert not re.search(r"%triton_|%config|the cell\b|cell line", text)
    for command in _commands(document):
        assert cli._parser().parse_args(shlex.split(command)[1:])


def _commands(document: Document) -> Iterator[str]:
    """Every command that is marked as code in it."""
    for block in document:
        if isinstance(block, Details):
            yield from _commands(block.blocks)
        marked = (
            re.findall(r"`(triton-magics [^`]+)`", block.text) if isinstance(block, Line) else []
        )
        yield from (command for command in marked if "…" not in command)


def test_details_are_shown_where_they_are_asked_for(run: Run) -> None:
    assert "folded: techniques (34 lines); --details shows them" in run("op", "softmax")[1]
    whole = run("op", "softmax", "--details")[1]
    assert "folded" not in whole
    assert len(whole.splitlines()) > 34 + 10


def test_a_reader_that_has_enough_is_no_fault(tmp_path: Path) -> None:
    script = f"{sys.executable} -m triton_magics ref overview --workspace {tmp_path} | true"
    ran = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_magics_own_word_is_a_command_too(run: Run) -> None:
    assert run("log", "softmax")[1] == run("export", "softmax")[1]


# --------------------------------------------------------------------------------- quickstart


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with two notebooks."""
    folder = tmp_path / "installed"
    folder.mkdir()
    for name in ("gelu.ipynb", "quickstart.ipynb"):
        (folder / name).write_text(name)
    monkeypatch.setattr(cli, "_NOTEBOOKS", (tmp_path / "no_wheel", folder))
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
        cli.copy_notebooks(tmp_path)
    assert (tmp_path / "quickstart.ipynb").read_text() == "my work"
    assert not (tmp_path / "gelu.ipynb").exists()
    cli.copy_notebooks(tmp_path, force=True)
    assert (tmp_path / "quickstart.ipynb").read_text() == "quickstart.ipynb"


def test_quickstart_into_a_file_is_the_users_to_mend(notebooks: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["quickstart", str(tmp_path / "file")]) == 2


def test_an_installation_without_notebooks_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_NOTEBOOKS", (tmp_path / "no_wheel", tmp_path / "no_repository"))
    with pytest.raises(Unavailable, match="no notebooks"):
        cli.copy_notebooks(tmp_path)
