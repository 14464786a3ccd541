# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""A validation of some shapes alone: it can fail a version, and replaces no verdict in full."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests import workspace_kit as kit
from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import IllegalStep
from triton_magics.lab import Lab
from triton_magics.model import Status, VersionState
from triton_magics.rendering import to_text, view

SOME = [(7, 13)]


def standing(lab: Lab) -> VersionState:
    state = lab.status("softmax").version("v1")
    assert state is not None
    return state


def test_shapes_that_pass_are_no_validation_in_full(lab: Lab) -> None:
    write(lab, "v1")
    validation = lab.validate("softmax", "v1", shapes=SOME)
    assert "a spot check is not enough to time it" in to_text(view(validation))
    assert "next: bench" not in to_text(view(validation))
    assert standing(lab).coverage.is_spot_check
    with pytest.raises(IllegalStep, match=r"has not passed .* \(validated on some shapes only\)"):
        lab.bench("softmax", "v1")
    assert lab.status("softmax").state == "evaluation"
    lab.validate("softmax", "v1")
    assert standing(lab).coverage.is_full
    assert lab.bench("softmax", "v1").passed
    assert lab.status("softmax").state == "write"


def test_shapes_that_pass_say_nothing_of_those_that_failed(lab: Lab, engine: FakeExecutor) -> None:
    sha256 = write(lab, "v1")
    engine.verdicts[sha256] = Status.FAILED
    lab.validate("softmax", "v1")
    del engine.verdicts[sha256]
    assert lab.validate("softmax", "v1", shapes=SOME).status is Status.PASSED
    assert standing(lab).validation is Status.FAILED
    with pytest.raises(IllegalStep, match="has not passed a validation"):
        lab.bench("softmax", "v1")
    lab.validate("softmax", "v1", plan="quick")
    assert standing(lab).validation is Status.PASSED
    assert lab.bench("softmax", "v1").passed


def test_a_store_with_shapes_as_validation_is_repaired(
    tmp_path: Path,
) -> None:
    with closing(kit.open_workspace(tmp_path)) as before:
        source = kit.write(before, "v1", 1)
        message = kit.validation(source, shapes=((8, 8),))
        before.record("softmax", "validated", result=message, source=source)
    with closing(sqlite3.connect(tmp_path / ".triton_magics" / "lab.db")) as store:
        row = ("softmax", source.sha256, "float32", "gpu", 2, True)
        store.execute("INSERT INTO passes VALUES (?, ?, ?, ?, ?, ?)", row)
        store.execute("UPDATE verdicts SET coverage = '{}'")
        store.execute("DELETE FROM migrations WHERE number > 3")
        store.execute("ALTER TABLE migrations DROP COLUMN since")
        store.execute("PRAGMA user_version = 3")
        store.commit()
    with closing(kit.open_workspace(tmp_path)) as after:
        assert after.passed_validation("softmax", source.sha256, "float32", "gpu") is None
        assert [v.coverage.is_spot_check for v in after.versions("softmax")] == [True]


def test_a_pass_in_full_stands_beside_shapes_that_pass(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    before = standing(lab)
    lab.validate("softmax", "v1", shapes=SOME)
    assert standing(lab) == before


@pytest.mark.parametrize(
    ("status", "stands"), [(Status.REJECTED, Status.PASSED), (Status.FAILED, Status.FAILED)]
)
def test_failed_shapes_fail_and_refused_shapes_are_a_limit(
    lab: Lab, engine: FakeExecutor, status: Status, stands: Status
) -> None:
    sha256 = write(lab, "v1")
    lab.validate("softmax", "v1")
    engine.verdicts[sha256] = status
    lab.validate("softmax", "v1", shapes=SOME)
    assert standing(lab).validation is stands
    assert standing(lab).attempts_failed == (stands is Status.FAILED)
    if stands is Status.PASSED:
        assert lab.bench("softmax", "v1").passed
