"""The short form of the soak; `make soak` is the long one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.engine_harness import MARK, marked, wait_until
from tests.faults.soak import soak


def test_thirty_jobs_of_which_some_are_faulty_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")
    found = soak(30, seed=1, folder=tmp_path / "workspace", mark=mark)
    assert found.wrong == ()
    assert found.faulty >= 2
    # Nanny; zygote, current worker and two that stand by; the cross-compiler's three. Five guards.
    assert found.after.processes <= 8 + 5
    wait_until(lambda: not marked(mark), within_s=5)
