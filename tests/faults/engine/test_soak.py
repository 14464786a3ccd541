"""The short form of the soak; `make soak` is the long one."""

from __future__ import annotations

import itertools
import random
import uuid
from pathlib import Path

import pytest

from tests.engine_harness import MARK, marked, wait_until
from tests.faults.engine.fault_lab import FILES, Fault
from tests.faults.soak import shuffled, soak


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


def test_a_soak_as_long_as_there_are_cells_does_each_of_them() -> None:
    cells = [Fault(path) for path in FILES]
    drawn = list(itertools.islice(shuffled(cells, random.Random(7)), 2 * len(cells)))
    assert {f.path for f in drawn[: len(cells)]} == set(FILES)
    assert drawn[: len(cells)] != drawn[len(cells) :]
