# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Notes on an op and its versions, as events and in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue, UnknownVersion
from triton_magics.lab import Lab


def log_of(lab: Lab) -> str:
    return (lab.path / lab.log("softmax").markdown).read_text()


def test_a_note_is_in_the_log_where_it_belongs(lab: Lab) -> None:
    write(lab, "v1")
    write(lab, "v2")
    shown = lab.note("softmax", "Two reads of `x` in place of **three**.\n", "v2")
    assert shown.title == "noted for the log: softmax v2_tiling"
    lab.note("softmax", "The op is bound by memory.")
    page = log_of(lab)
    summary, kernels = page.split("## Phase 2: kernels")
    assert "The op is bound by memory." in summary
    assert "Two reads of `x` in place of **three**." in kernels.split("### v2_tiling")[1]
    notes = [e for e in lab.events("softmax") if e.verb == "noted"]
    assert [(e.version, e.attempt) for e in notes] == [("v2_tiling", 1), (None, None)]


def test_notes_outlive_the_store(lab: Lab, tmp_path: Path) -> None:
    write(lab, "v1")
    lab.note("softmax", "kept in the events", "v1")
    lab.close()
    (tmp_path / ".triton_magics" / "lab.db").unlink()
    with Lab(tmp_path, engine=FakeExecutor()) as other:
        assert "kept in the events" in log_of(other)


def test_a_note_changes_no_state(lab: Lab) -> None:
    write(lab, "v1")
    before = lab.op_state("softmax")
    lab.note("softmax", "nothing happens", "v1")
    after = lab.op_state("softmax")
    assert (after.state, after.missing) == (before.state, before.missing)


@pytest.mark.parametrize("text", ["", " \n", "x" * 20_001])
def test_a_note_without_text_or_with_too_much_is_refused(lab: Lab, text: str) -> None:
    before = len(lab.events("softmax"))
    with pytest.raises(BadValue, match="letters: write 1 to 20,000"):
        lab.note("softmax", text)
    with pytest.raises(UnknownVersion):
        lab.note("softmax", "fine", "v9")
    assert len(lab.events("softmax")) == before
