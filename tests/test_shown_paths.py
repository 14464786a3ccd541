"""Text of a worker shows the user's files, not those of its scratch folder."""

from __future__ import annotations

from pathlib import Path

from tests.execution_kit import VERSION
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob, RunJob, SweepJob
from triton_magics.execution.local.shown_paths import ShownPaths
from triton_magics.execution.scratch import SOURCES

SCRATCH = Path("/home/a user/.cache/triton_magics/children/1/2")
FOLDER = f"{SCRATCH}/{SOURCES}/{'0a' * 12}"
SOFTMAX = OpRef(name="softmax")


def test_a_versions_file_is_shown_by_its_own_name() -> None:
    paths = ShownPaths(SCRATCH, RunJob(op=SOFTMAX, version=VERSION))
    text = f'  File "{FOLDER}/v1_baseline.py", line 7 in solve'
    assert paths.replace_in(text) == '  File "v1.py", line 7 in solve'


def test_a_configuration_of_a_sweep_is_shown_as_its_version() -> None:
    point = {"settings": {"BLOCK": 64}, "source": "", "sha256": VERSION.sha256}
    job = SweepJob(
        op=SOFTMAX, version=VERSION, points=(point,), size="small", dtype="float32", seed=1
    )
    assert ShownPaths(SCRATCH, job).replace_in(f"{FOLDER}/v1.py:3") == "v1.py:3"


def test_an_own_ops_file_is_shown_by_its_own_name() -> None:
    job = DescribeJob(op=OpRef.own("double", ""))
    assert ShownPaths(SCRATCH, job).replace_in(f"{FOLDER}/reference.py") == "double/reference.py"


def test_other_paths_stay() -> None:
    paths = ShownPaths(SCRATCH, RunJob(op=SOFTMAX, version=VERSION))
    for text in ("/x/v1_baseline.py", f"{FOLDER}/other.py", f"/elsewhere/{SOURCES}/v1.py"):
        assert paths.replace_in(text) == text
    assert ShownPaths(None, None).replace_in(FOLDER) == FOLDER
