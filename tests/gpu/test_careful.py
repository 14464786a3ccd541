"""The notebooks' kernels that leave out a maximum, on a GPU and on inputs that need it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from triton_magics.engine import gpu

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"),
]


def test_what_is_done_again_with_a_maximum_is_right() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    told = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "careful.py")],
        capture_output=True, text=True, check=True, timeout=120, env=environment,
    )  # fmt: skip
    errors = json.loads(told.stdout)
    assert len(errors) == 10
    wrong = {
        what: error
        for what, error in errors.items()
        if not error < (2e-6 if what.startswith("logits") else 2e-2)  # NaN is wrong, too
    }
    assert wrong == {}
