"""The short form of notebooks at once, with two; `tests/faults/notebooks.py` is the long one."""

from __future__ import annotations

import importlib.util
import uuid
from pathlib import Path

import pytest
import torch

from tests.execution_kit import PROCESS_TAG
from tests.faults.notebooks import SOURCE, between, long_waits, run_notebooks, spans


@pytest.mark.in_turn
def test_two_notebooks_in_one_workspace_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_tag = uuid.uuid4().hex
    monkeypatch.setenv(PROCESS_TAG, process_tag)
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    result = run_notebooks(3, "interpreter", tmp_path, process_tag, n_notebooks=2)
    assert result.wrong == ()
    assert min(result.benches.values()) >= 2
    assert result.attempts >= 8


def test_a_call_that_only_compiles_is_not_noted(tmp_path: Path) -> None:
    (tmp_path / "v1.py").write_text(
        SOURCE.format(name="n0", number=1, notes=str(tmp_path / "notes"))
    )
    spec = importlib.util.spec_from_file_location("v1", tmp_path / "v1.py")
    version = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(version)
    version.triton_relu(torch.ones(4))
    version.kernel = {
        (1,): lambda *args, **options: None
    }  # which can't be interpreted without memory
    version.triton_relu(torch.ones(4, device="meta"))
    assert len((tmp_path / "notes").read_text().splitlines()) == 1


def test_a_call_within_anothers_timing_is_seen() -> None:
    timed = spans([(5, 6), (10, 11), (20, 21), (30, 31)], [(9, 25, "passed"), (40, 50, "passed")])
    assert timed == [(10, 21)]
    assert between([(9, 9), (10, 12), (21, 22), (22, 23)], *timed[0]) == 2


def test_each_long_wait_is_reported_with_its_last_stage() -> None:
    stages = ["loading", "waiting 0 s for the GPU", "waiting 5 s for the GPU, held by process 7"]
    stages += ["softmax small", "waiting 3 s for the GPU", "loading", "waiting 9 s for the GPU"]
    notebooks = {"n1": {"stages": [[i, text] for i, text in enumerate(stages)]}}
    assert long_waits(notebooks, 4.0) == (
        "n1 at 6 s: waiting 9 s for the GPU",
        "n1 at 2 s: waiting 5 s for the GPU, held by process 7",
    )
