"""Tests on a GPU of the notebooks' kernels without a maximum, on inputs that need it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from triton_magics.execution.local import gpu_detection

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]


def test_kernels_without_a_maximum_fall_back_to_one() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    process = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "careful.py")],
        capture_output=True, text=True, check=True, timeout=120, env=environment,
    )  # fmt: skip
    errors = json.loads(process.stdout)
    assert len(errors) == 28
    wrong = {
        name: error
        for name, error in errors.items()
        if not error < (2e-6 if name.startswith("logits") else 2e-2)  # NaN is wrong, too
    }
    assert wrong == {}
