"""`%triton_log OP --tests`: a test file that runs in the user's own CI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from triton_magics.config import Settings
from triton_magics.errors import ExportError, UnknownVersion
from triton_magics.lab import Lab
from triton_magics.model import Status

ROOT = Path(__file__).parents[1]
SOURCE = "import triton\n\n\ndef solve(x):\n    return x  # {}\n"
# Stands in for a worker, so that what is tested is the file.
CONFTEST = """
import pytest
from tests.fake_executor import FakeExecutor
from triton_magics.model import Status

class Engine(FakeExecutor):
    def __init__(self, settings):
        super().__init__(missing={missing!r})

    def run(self, job, **options):
        if "wrong" in job.version.source:
            self.verdicts[job.version.sha256] = Status.FAILED
        print("asked", job.dtypes, job.rtol, job.version.entry)
        return super().run(job, **options)

@pytest.fixture(autouse=True, scope="session")
def engine():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("triton_magics.execution.registry.LocalExecutor", Engine)
        yield
"""


@pytest.fixture
def engine() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeExecutor) -> Iterator[Lab]:
    with Lab(tmp_path / "ws", engine=engine, settings=Settings()) as result:
        for version, text in (("v1", "one"), ("v2", "two")):
            result.write("softmax", version, SOURCE.format(text))
            result.validate("softmax", version, dtypes=("float32",), rtol=0.01)
        yield result


def in_ci(workspace: Path, missing: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the tests of the workspace as its owner would."""
    (workspace / "conftest.py").write_text(CONFTEST.format(missing=missing))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-s", "-p", "no:cacheprovider", "tests"],
        cwd=workspace, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.in_turn
def test_passed_versions_are_validated_with_their_options(lab: Lab) -> None:
    assert lab.export("softmax", tests=True).tests == "tests/test_softmax.py"
    events = (lab.path / "logs" / "softmax_log.jsonl").read_text()
    ran = in_ci(lab.path)
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout
    assert "asked ('float32',) 0.01 solve" in ran.stdout
    assert (lab.path / "logs" / "softmax_log.jsonl").read_text() == events


def test_broken_version_fails(lab: Lab) -> None:
    lab.export("softmax", tests=True)
    path = lab.path / "kernels" / "softmax" / "v2_tiling.py"
    path.write_text(path.read_text() + "# wrong\n")
    ran = in_ci(lab.path)
    assert "1 failed, 1 passed" in ran.stdout
    assert "✗ WRONG  softmax v2" in ran.stdout


def test_file_is_skipped_without_triton(lab: Lab) -> None:
    lab.export("softmax", tests=True)
    ran = in_ci(lab.path, missing="torch is not installed: pip install torch")
    assert ran.returncode == 0
    assert "2 skipped" in ran.stdout
    assert "torch is not installed" in ran.stdout


def test_file_contains_only_passed_versions(lab: Lab, engine: FakeExecutor) -> None:
    wrong = lab.write("softmax", "v3", SOURCE.format("three"))
    engine.verdicts[wrong.source.sha256] = Status.FAILED
    lab.validate("softmax", "v3")
    lab.export("softmax", tests=True)
    text = (lab.path / "tests" / "test_softmax.py").read_text()
    assert "v2_tiling" in text
    assert "v3" not in text


def test_no_file_without_a_passed_version(lab: Lab) -> None:
    with pytest.raises(UnknownVersion, match="no version of gelu has passed"):
        lab.export("gelu", tests=True)
    assert not (lab.path / "tests").exists()


def test_user_file_is_not_overwritten(lab: Lab) -> None:
    (lab.path / "tests").mkdir()
    own = lab.path / "tests" / "test_softmax.py"
    own.write_text("def test_mine(): ...\n")
    with pytest.raises(ExportError, match="not written by triton_magics"):
        lab.export("softmax", tests=True)
    assert own.read_text() == "def test_mine(): ...\n"


def test_file_is_deterministic(lab: Lab) -> None:
    lab.export("softmax", tests=True)
    first = (lab.path / "tests" / "test_softmax.py").read_bytes()
    lab.export("softmax", tests=True)
    assert (lab.path / "tests" / "test_softmax.py").read_bytes() == first
