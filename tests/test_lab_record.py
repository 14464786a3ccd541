"""Tests of the record: missing versions, files and folders that move."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.workspace_kit import child, wait_for_output
from triton_magics.config import Settings
from triton_magics.errors import BadName, UnknownVersion, UserError, WorkspaceError
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.rendering import plot_kinds

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with Lab(tmp_path / "ws", engine=FakeExecutor(), settings=Settings()) as lab:
        lab.op("softmax")
        for version in ("v1", "v3"):
            lab.write("softmax", version, SOURCE.format(version))
            lab.validate("softmax", version)
        lab.bench("softmax")
        yield lab


def test_a_log_with_a_missing_version_says_so_and_is_whole(lab: Lab) -> None:
    log_files = lab.export("softmax")
    text = (lab.path / log_files.markdown).read_text()
    assert "Phase 2: at least 3 versions were written — 2 so far" in text
    cells = json.loads((lab.path / log_files.notebook).read_text())["cells"]
    ids = [c["id"] for c in cells if c["id"].endswith("-code")]
    assert ids == ["softmax-v1-code", "softmax-v3-code"]
    assert lab.take(["softmax"]).paused_at == "softmax"


def test_a_log_tells_the_verdict_that_stands(lab: Lab) -> None:
    """A quick pass after a full one, or an interrupt, does not replace the full verdict."""
    before = (lab.path / lab.export("softmax").markdown).read_text()
    lab.validate("softmax", "v1", plan="quick")
    assert (lab.path / lab.export("softmax").markdown).read_text() == before
    lab.session.jobs.executor.answer = lambda _job: Outcome(
        status="interrupted", detail="interrupted"
    )
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    assert (lab.path / lab.export("softmax").markdown).read_text() == before
    lab.restore("softmax", "v1", 1)
    assert (lab.path / lab.export("softmax").markdown).read_text() == before


def test_a_log_reads_what_stands_and_not_the_whole_history(lab: Lab) -> None:
    """Every event that no longer stands is made unreadable; the log does not miss it."""
    for _ in range(5):
        lab.validate("softmax", "v1")
        lab.bench("softmax")
        lab.inspect("softmax", "v1")
        lab.op("softmax")
    before = [Path(p).read_bytes() for p in lab.export("softmax").paths]
    with closing(sqlite3.connect(lab.path / ".triton_magics" / "lab.db")) as store, store:
        standing = (
            "SELECT seq FROM attempts UNION SELECT compiled_seq FROM attempts WHERE compiled_seq"
            " UNION SELECT seq FROM verdicts UNION SELECT seq FROM timed"
        )
        spoilt = store.execute(f"UPDATE events SET json = 'x' WHERE seq NOT IN ({standing})")
        assert spoilt.rowcount >= 20
    assert [Path(p).read_bytes() for p in lab.export("softmax").paths] == before


def test_only_pictures_of_what_changed_are_drawn_again(lab: Lab) -> None:
    lab.export("softmax")
    drawn_before = plot_kinds._draw_cached.cache_info().misses
    lab.op("gelu")
    lab.export("softmax")
    assert plot_kinds._draw_cached.cache_info().misses == drawn_before
    lab.bench("softmax")
    lab.export("softmax")
    assert plot_kinds._draw_cached.cache_info().misses > drawn_before


def test_a_log_of_an_op_without_versions_is_written_too(lab: Lab) -> None:
    lab.op("gelu")
    text = (lab.path / lab.export("gelu").markdown).read_text()
    assert "no version exists yet" in text


def test_what_never_was_is_not_made_up(lab: Lab) -> None:
    with pytest.raises(UnknownVersion, match=r"softmax has no v2"):
        lab.validate("softmax", "v2")


def test_renaming_a_running_notebook_changes_nothing(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is named for the notebook, and the workspace is fixed when it is opened."""
    (lab.path / "mine.ipynb").write_text("{}")
    os.rename(lab.path / "mine.ipynb", lab.path / "yours.ipynb")
    monkeypatch.chdir(tmp_path)
    lab.write("softmax", "v2", SOURCE.format("v2"))
    assert (lab.path / "kernels" / "softmax" / "v2_tiling.py").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ws"]


def test_moved_workspace_is_an_error_and_loses_nothing(lab: Lab, tmp_path: Path) -> None:
    os.rename(lab.path, tmp_path / "elsewhere")
    with pytest.raises(WorkspaceError):
        lab.write("softmax", "v2", SOURCE.format("v2"))
    assert not (tmp_path / "ws").exists()
    with Lab(tmp_path / "elsewhere", engine=FakeExecutor(), settings=Settings()) as again:
        assert again.versions("softmax") == ("v1_baseline", "v3_coalesced")


@pytest.mark.parametrize("name", ["../softmax", "a/b", "softmax\0", "softmаx", "CON/..", ""])
def test_a_name_from_elsewhere_touches_nothing(lab: Lab, name: str) -> None:
    before = sorted(lab.path.parent.rglob("*"))
    with pytest.raises(UserError):
        lab.export(name)
    with pytest.raises(UserError):
        lab.take([name])
    with pytest.raises((BadName, UserError)):
        lab.reference(name, "def reference(x): return x\n")
    assert sorted(lab.path.parent.rglob("*")) == before


def test_events_of_another_op_in_a_log_are_reported(lab: Lab) -> None:
    log = lab.path / "logs" / "softmax_log.jsonl"
    event = json.loads(log.read_text().splitlines()[0])
    with log.open("a") as file:
        file.write(json.dumps({**event, "uuid": "f" * 32, "op": "../x"}) + "\n")
    states = {f.subject: f.detail for f in lab.session.workspace.repair()}
    assert "1 line is not an event of softmax" in states["logs/softmax_log.jsonl"]
    assert not (lab.path.parent / "x").exists()


# ----------------------------------------------------------- folders that can't take what is made

IN_A_CHILD = """
import os, resource, sys
from pathlib import Path
from tests.fake_executor import FakeExecutor
from triton_magics.config import Settings
from triton_magics.errors import TritonMagicsError
from triton_magics.lab import Lab

def said(call):
    try:
        return str(call() and "done")
    except TritonMagicsError as error:
        return f"{type(error).__name__}: {error}"

def opened():
    return Lab(sys.argv[1], engine=FakeExecutor(), settings=Settings())
"""


def test_a_log_on_a_full_disk_leaves_the_earlier_one_whole(lab: Lab) -> None:
    paths = [Path(p) for p in lab.export("softmax").paths]
    before = [p.read_bytes() for p in paths]
    lab.write("softmax", "v2", SOURCE.format("v2"))
    lab.close()
    code = IN_A_CHILD + (
        "with opened() as lab:\n"
        "    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))\n"
        "    print(said(lambda: lab.export('softmax')))\n"
        "    print(said(lambda: lab.export('softmax', tests=True)))\n"
        "    print(said(lab.summary))\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "    print(said(lambda: lab.export('softmax')))\n"
    )
    child_ = child(code, lab.path)
    first, second, _summary, last = wait_for_output(child_).splitlines()
    for line in (first, second):
        assert line.startswith(
            "ExportError: the log of softmax could not be written: writing logs/"
        )
        assert "is full" in line
    assert last == "done"
    now = [p.read_bytes() for p in paths]
    assert all(old != new for old, new in zip(before, now, strict=True))


def test_a_read_only_workspace_shows_all_and_writes_no_log(tmp_path: Path) -> None:
    base = Path(tempfile.mkdtemp())  # pytest's own folders can't be entered by another user
    try:
        base.chmod(0o755)
        with Lab(base / "ws", engine=FakeExecutor(), settings=Settings()) as lab:
            lab.write("softmax", "v1", SOURCE.format("v1"))
            lab.validate("softmax", "v1")
        for part in [base / "ws", *(base / "ws").rglob("*")]:
            part.chmod(0o555 if part.is_dir() else 0o444)
        code = IN_A_CHILD + (
            "with Lab(Path(sys.argv[1]).parent / 'warm', engine=FakeExecutor()) as warm:\n"
            "    warm.op('softmax'), warm.export('softmax'), warm.summary()  # import everything\n"
            "if os.getuid() == 0: os.setgroups([]), os.setgid(65534), os.setuid(65534)\n"
            "with opened() as lab:\n"
            "    print(said(lambda: lab.validate('softmax', 'v1')), *lab.notes())\n"
            "    print(lab.status('softmax').versions[0].validation, lab.report().ops[0].op)\n"
            "    print(said(lambda: lab.write('softmax', 'v1', 'def triton_softmax(x): ...')))\n"
            "    print(said(lambda: lab.export('softmax')))\n"
            "    print(said(lab.summary))\n"
            "    print(said(lambda: lab.doctor(repair=True)))\n"
        )
        lines = wait_for_output(child(code, base / "ws")).splitlines()
    finally:
        for part in [base, *base.rglob("*")]:
            part.chmod(0o755)
        shutil.rmtree(base)
    assert lines[0].startswith("done")
    assert "can't be written: nothing is recorded" in lines[0]
    assert lines[1].endswith("passed softmax")
    assert "saving softmax v1 failed" in lines[2]
    assert lines[3].startswith("ExportError: the log of softmax could not be written")
    assert lines[4].startswith("ExportError: the summary could not be written")
    assert lines[5].startswith("WorkspaceError: ")


def test_verdict_that_cannot_be_recorded_is_returned(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        lab.op("softmax")
        lab.write("softmax", "v1", "def triton_softmax(x): ...")
        with sqlite3.connect(tmp_path / ".triton_magics" / "lab.db") as conn:
            conn.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.verb = 'validated'"
                " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        verdict = lab.validate("softmax", "v1")
        assert lab.last == verdict
        assert any("not recorded" in note for note in lab.notes())


def test_a_verdict_is_recorded_when_the_store_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.store.sqlite_errors.TIMEOUT_S", 0.1)
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        lab.op("softmax")
        lab.write("softmax", "v1", "def triton_softmax(x): ...")
        path = tmp_path / ".triton_magics" / "lab.db"
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            verdicts = [lab.validate("softmax", "v1") for _ in range(2)]
            other.execute("ROLLBACK")
        assert "has locked the store" in " ".join(lab.notes())
        assert lab.last == verdicts[-1]
        lab.run("softmax", "v1")
        events = lab.session.workspace.events("softmax")
        assert [event.verb for event in events][-3:] == ["validated", "validated", "ran"]
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        assert lab.status("softmax").versions[0].validation == "passed"
