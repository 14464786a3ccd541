# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""A validation of some shapes alone: it can fail a version, and replaces no verdict in full."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests import workspace_kit as kit
from tests.fake_engine import FakeEngine
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import IllegalStep
from triton_magics.lab import Lab
from triton_magics.model import Status, VersionState
from triton_magics.report import to_text, view

SOME = [(7, 13)]


def standing(lab: Lab) -> VersionState:
    found = lab.status("softmax").version("v1")
    assert found is not None
    return found


def test_shapes_that_pass_are_no_validation_in_full(lab: Lab) -> None:
    write(lab, "v1")
    made = lab.validate("softmax", "v1", shapes=SOME)
    assert "some shapes alone are not enough to time it" in to_text(view(made))
    assert "%triton_bench" not in to_text(view(made))
    assert standing(lab).validation_plan == "only some shapes"
    with pytest.raises(IllegalStep, match=r"has not passed .* \(only of some shapes\), so"):
        lab.bench("softmax", "v1")
    assert lab.status("softmax").state == "evaluation"
    lab.validate("softmax", "v1")
    assert standing(lab).validation_plan == "full"
    assert lab.bench("softmax", "v1").passed
    assert lab.status("softmax").state == "write"


def test_shapes_that_pass_say_nothing_of_those_that_failed(lab: Lab, engine: FakeEngine) -> None:
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


def test_a_store_that_took_shapes_for_a_validation_is_put_right_when_it_is_opened(
    tmp_path: Path,
) -> None:
    with closing(kit.opened(tmp_path)) as before:
        source = kit.write(before, "v1", 1)
        said = kit.validation(source).model_copy(update={"options": ("--shape 8x8",)})
        before.record("softmax", "validated", result=said, source=source)
    with closing(sqlite3.connect(tmp_path / ".triton_magics" / "lab.db")) as store:
        row = ("softmax", source.sha256, "float32", "gpu", 2, True)
        store.execute("INSERT INTO passes VALUES (?, ?, ?, ?, ?, ?)", row)
        store.execute("UPDATE verdicts SET plan = 'full'")
        store.execute("DELETE FROM migrations WHERE number > 3")
        store.execute("PRAGMA user_version = 3")
        store.commit()
    with closing(kit.opened(tmp_path)) as after:
        assert after.passed_validation("softmax", source.sha256, "float32", "gpu") is None
        assert [v.validation_plan for v in after.versions("softmax")] == ["only some shapes"]


def test_a_pass_in_full_stands_beside_shapes_that_pass(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    before = standing(lab)
    lab.validate("softmax", "v1", shapes=SOME)
    assert standing(lab) == before


@pytest.mark.parametrize(
    ("status", "stands"), [(Status.REJECTED, Status.PASSED), (Status.FAILED, Status.FAILED)]
)
def test_shapes_that_fail_do_and_shapes_that_are_refused_are_a_stated_limit(
    lab: Lab, engine: FakeEngine, status: Status, stands: Status
) -> None:
    sha256 = write(lab, "v1")
    lab.validate("softmax", "v1")
    engine.verdicts[sha256] = status
    lab.validate("softmax", "v1", shapes=SOME)
    assert standing(lab).validation is stands
    assert standing(lab).attempts_failed == (stands is Status.FAILED)
    if stands is Status.PASSED:
        assert lab.bench("softmax", "v1").passed
