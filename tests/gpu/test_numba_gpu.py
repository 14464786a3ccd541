"""Numba as a language from outside, on a GPU: found by its entry point, judged and timed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.languages.test_numba_language import PACKAGE, RELU
from triton_magics import languages, rendering
from triton_magics.execution.local import gpu_detection
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus
from triton_magics.rendering import view

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu" or importlib.util.find_spec("numba") is None,
        reason="no NVIDIA GPU with a CUDA build of torch, or no numba-cuda",
    ),
]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    folder = tmp_path / "site"
    (folder / "numba_language-1.dist-info").mkdir(parents=True)
    (folder / "numba_language-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: numba-language\nVersion: 1\n"
    )
    (folder / "numba_language-1.dist-info" / "entry_points.txt").write_text(
        f"[{languages.GROUP}]\nnumba = triton_magics_numba:LANGUAGE\n"
    )
    paths = [str(folder), str(PACKAGE), str(ROOT)]
    for path in paths:
        monkeypatch.syspath_prepend(path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]))
    languages.refresh()
    with Lab(tmp_path / "work") as lab:
        yield lab
    monkeypatch.undo()
    languages.refresh()


def test_a_numba_version_is_judged_and_timed(lab: Lab) -> None:
    lab.op("relu")
    lab.kernel("relu", "v1", RELU, type="numba", cell_offset=1)
    right = lab.validate("relu", "v1", dtypes=["float32"])
    assert right.passed, rendering.to_text(view(right))
    assert right.triton_kernels == ("relu_kernel",)
    assert lab.bench("relu", "v1").final_us("v1") is not None
    wrong = RELU.replace("max(x[i], 0)", "max(x[i], 0.01)")
    lab.kernel("relu", "v2", wrong, type="numba", cell_offset=1)
    verdict = lab.validate("relu", "v2", plan="quick", dtypes=["float32"])
    assert verdict.failed_cases[0].status is CaseStatus.WRONG_VALUES
