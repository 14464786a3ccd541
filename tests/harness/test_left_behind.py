"""Tests of the settings that a call must leave as they were."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from tests.harness.kit import KERNELS, run_cases
from triton_magics.harness.correctness.left_behind import LeftBehind
from triton_magics.model import Case


def test_only_a_lowered_recursion_limit_is_a_fault() -> None:
    before, settings = sys.getrecursionlimit(), LeftBehind()
    sys.setrecursionlimit(before + 1000)
    assert settings.restore() is None
    assert sys.getrecursionlimit() == before
    sys.setrecursionlimit(before - 1)
    message = settings.restore()
    assert message == (
        f"the version left the recursion limit changed: {before} before, {before - 1} after"
    )
    assert sys.getrecursionlimit() == before


def test_a_default_dtype_is_put_back_and_named() -> None:
    settings = LeftBehind()
    torch.set_default_dtype(torch.float64)
    assert "default dtype" in str(settings.restore())
    assert torch.get_default_dtype() == torch.float32


def test_the_monitor_of_a_progress_bar_is_no_unfinished_work(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    source = (KERNELS / "softmax_right.py").read_text()
    line = "    return out.view(x.shape)"
    assert source.count(line) == 1
    path = tmp_path / "kernel.py"
    path.write_text(source.replace(line, f"    tqdm.tqdm(total=1, disable=False)\n{line}"))
    path.write_text(f"import tqdm\n{path.read_text()}")
    (result,) = run_cases(path, Case(shape=(7, 13), dtype="float32", seed=1))
    assert result.status == "passed", result.reason
