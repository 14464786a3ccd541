"""The short form of the soak; `make soak` is the long one."""

from __future__ import annotations

import itertools
import os
import random
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.faults.engine.fault_lab import FILES, Fault
from tests.faults.soak import Use, repeat_shuffled, soak

pytestmark = pytest.mark.in_turn


def test_thirty_jobs_of_which_some_are_faulty_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_tag = uuid.uuid4().hex
    monkeypatch.setenv(PROCESS_TAG, process_tag)
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")
    result = soak(30, seed=1, folder=tmp_path / "workspace", process_tag=process_tag)
    assert result.wrong == ()
    assert result.faulty >= 2
    # Supervisor, fork server, worker, two standbys, three cross-compilers; five watchdogs; and the
    # subject processes of worker and standbys.
    assert result.after.processes <= 8 + 5 + 3
    wait_until(lambda: not tagged_processes(process_tag), within_s=5)


def test_gpu_memory_of_others_is_no_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    used_mib = itertools.count(1000, step=5000)
    monkeypatch.setattr("tests.faults.soak.gpu_mib", lambda: next(used_mib))
    monkeypatch.setattr("tests.faults.soak.own_gpu_mib", lambda pids: None)
    monkeypatch.setattr("tests.faults.soak.all_ready", lambda faults: True)
    faults = SimpleNamespace(
        strangers=set, pool=SimpleNamespace(pids=(os.getpid(),)), open_descriptors=lambda: 8
    )
    before, after = Use.now(faults), Use.now(faults)
    assert (before.gpu_mib, after.describe_growth(before)) == (None, [])
    before, after = (Use.now(faults, is_alone=True) for _ in range(2))
    (growth,) = after.describe_growth(before)
    assert growth.startswith("GPU memory is left")


def test_a_soak_as_long_as_there_are_cells_does_each_of_them() -> None:
    cells = [Fault(path) for path in FILES]
    drawn = list(itertools.islice(repeat_shuffled(cells, random.Random(7)), 2 * len(cells)))
    assert {f.path for f in drawn[: len(cells)]} == set(FILES)
    assert drawn[: len(cells)] != drawn[len(cells) :]
