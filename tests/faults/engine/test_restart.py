"""A notebook that is restarted in the midst of a job: its finished cases are recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.engine.fault_lab import RIGHT
from tests.jupyter_kernel import Notebook
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Status, Validation

ROOT = Path(__file__).parents[3]
SLOW = RIGHT.replace("    out = torch", "    time.sleep(0.1)\n    out = torch")
CELL = """
import sys
sys.path.insert(0, {root!r})
from triton_magics.config import Settings
from triton_magics.lab import Lab
lab = Lab({folder!r}, settings=Settings(device="interpreter"))
lab.write("relu", "v1", {source!r}, compile=False)
passed = 0
def count(step):
    global passed
    if step.case_result is not None and step.case_result.status == "passed":
        passed += 1
        print("passed:", passed, flush=True)
lab.on_progress = count
lab.validate("relu", "v1")
"""


@pytest.mark.in_turn
def test_a_restart_keeps_the_cases_that_were_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    notebook = Notebook()
    source = "import time\n" + SLOW
    notebook.start(CELL.format(root=str(ROOT), folder=str(workspace), source=source))
    notebook.wait_for("passed: 3")
    notebook.manager.restart_kernel()
    notebook.close()
    with Lab(workspace) as lab:
        validation = lab.events("relu")[-1].result
        assert lab.source("relu", "v1").source.strip() == source.strip()
    assert isinstance(validation, Validation)
    assert validation.status is Status.INTERRUPTED
    done = [case for case in validation.cases if case.status is CaseStatus.PASSED]
    assert 3 <= len(done) < len(validation.cases)
