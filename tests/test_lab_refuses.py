# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Tests of requests that the lab refuses or notes, without any loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import SOURCE, engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import (
    AmbiguousEntry,
    BadKernelSource,
    BadName,
    BadValue,
    IllegalStep,
    Unavailable,
    UnknownName,
    UnknownOp,
    UnknownVersion,
    UserError,
)
from triton_magics.lab import Lab


def test_error_of_an_unknown_name_suggests_the_nearest(lab: Lab) -> None:
    with pytest.raises(UnknownOp, match="sofmax.*Did you mean 'softmax'"):
        lab.op("sofmax")
    with pytest.raises(UnknownVersion, match="no version"):
        lab.validate("softmax", "v1")
    write(lab, "v1")
    with pytest.raises(UnknownVersion, match="v1_baseline"):
        lab.validate("softmax", "v2")
    with pytest.raises(UnknownName, match="smal.*small"):
        lab.run("softmax", "v1", size="smal")
    with pytest.raises(UnknownName, match="float33.*float32"):
        lab.validate("softmax", "v1", dtypes=["float33"])


@pytest.mark.parametrize("version", ["1", "v0", "v1/../..", "v1_Ä", "v1_", "V1", "v1 2", ""])
def test_an_invalid_version_is_refused_and_not_written(
    lab: Lab, tmp_path: Path, version: str
) -> None:
    with pytest.raises(BadName, match="v1"):
        lab.write("softmax", version, SOURCE)
    assert not (tmp_path / "kernels").exists()


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("def triton_softmax(x):\n    return (\n", BadKernelSource, "line 2"),
        ("x = 1\n", BadKernelSource, "triton_softmax"),
        ("", BadKernelSource, "empty"),
        ("def f(x): return x\ndef g(x): return x\n", AmbiguousEntry, "f, g"),
    ],
)
def test_a_cell_without_an_entry_is_refused_without_loss(
    lab: Lab, tmp_path: Path, source: str, error: type[Exception], words: str
) -> None:
    stored = write(lab, "v1")
    with pytest.raises(error, match=words):
        lab.write("softmax", "v1", source)
    assert lab.source("softmax", "v1").sha256 == stored


def test_a_tolerance_that_is_none_is_refused(lab: Lab) -> None:
    write(lab, "v1")
    with pytest.raises(BadValue, match="rtol=2: write a number from 0 to below 1"):
        lab.validate("softmax", "v1", rtol=2)


def test_a_step_out_of_order_is_a_note_or_a_strict_error(
    tmp_path: Path, engine: FakeExecutor
) -> None:
    with Lab(tmp_path / "loose", engine=engine) as loose:
        write(loose, "v1")
        write(loose, "v2")
        (note,) = loose.notes()
        assert "references not shown yet" in note
    with Lab(tmp_path / "strict", engine=engine, strict=True) as strict:
        strict.op("softmax")
        write(strict, "v1")
        with pytest.raises(IllegalStep, match=r"Allowed now: validate"):
            write(strict, "v2")
        strict.status("softmax", force_write="another idea")
        write(strict, "v2")


def test_without_triton_writing_and_logs_work(
    tmp_path: Path,
) -> None:
    missing = "Triton is not installed: pip install 'triton-magics[kernels]'"
    with Lab(tmp_path, engine=FakeExecutor(missing=missing)) as lab:
        assert lab.op("softmax").engine.missing == missing
        assert lab.write("softmax", "v1", SOURCE).compilation is None
        assert "softmax" in lab.ref("online", "softmax").markdown
        with pytest.raises(Unavailable, match="pip install"):
            lab.validate("softmax", "v1")
        assert Path(lab.export("softmax").paths[0]).is_file()


def test_a_workspace_whose_parent_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="create it, or choose another"):
        Lab(tmp_path / "no" / "where", engine=FakeExecutor())


def test_an_own_op_may_not_take_a_shipped_name(lab: Lab) -> None:
    with pytest.raises(UserError, match="ships"):
        lab.reference("softmax", "def reference(x): return x")
