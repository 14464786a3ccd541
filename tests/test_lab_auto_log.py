# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The log that is written after each verdict, where the setting says so."""

from __future__ import annotations

from pathlib import Path

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.config import Settings
from triton_magics.lab import Lab


def test_no_log_is_written_by_default(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    assert not list((lab.path / "logs").glob("*.md"))


def test_each_verdict_writes_the_log(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor(), settings=Settings(auto_log=True)) as lab:
        write(lab, "v1")
        validation = lab.validate("softmax", "v1")
        log = tmp_path / "logs" / "softmax_log.md"
        first = log.read_text()
        assert "| 9 of 9 |" in first
        assert lab.session.last == validation
        lab.bench("softmax")
        assert log.read_text() != first
        assert "Speedup" in log.read_text()


def test_a_log_that_cannot_be_written_is_a_note(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor(), settings=Settings(auto_log=True)) as lab:
        write(lab, "v1")
        (tmp_path / "logs" / "softmax_log.md").mkdir()
        assert lab.validate("softmax", "v1").passed
        assert "the log of softmax was not written" in lab.session.notes.all[-1].text
