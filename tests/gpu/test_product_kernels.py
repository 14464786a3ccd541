"""Tests on a Hopper GPU of the notebooks' Gluon products, which no interpreter runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from triton_magics.execution.local import gpu_detection

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu" or torch.cuda.get_device_capability()[0] != 9,
        reason="no Hopper GPU with a CUDA build of torch",
    ),
]
CHECKS = {"matmuls": 58, "losses": 32, "fp8_matmuls": 32, "repeats": 2}


@pytest.fixture(scope="module")
def excesses() -> dict[str, dict[str, float | str]]:
    """The excess of every check, from one process without Triton's interpreter."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = f"{ROOT}:{environment.get('PYTHONPATH', '')}"
    process = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "products.py")],
        capture_output=True, text=True, check=False, timeout=180, env=environment,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-3000:]
    families: dict[str, dict[str, float | str]] = json.loads(process.stdout)
    return families


@pytest.mark.parametrize("family", CHECKS)
def test_products_are_within_their_allowed_error(
    excesses: dict[str, dict[str, float | str]], family: str
) -> None:
    assert len(excesses[family]) == CHECKS[family]
    wrong = {
        name: excess
        for name, excess in excesses[family].items()
        if isinstance(excess, str) or not excess <= 0  # NaN is wrong, too
    }
    assert wrong == {}


def test_the_oracle_adds_float8_as_the_tensor_cores_do() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = f"{ROOT}:{environment.get('PYTHONPATH', '')}"
    process = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "float8_sums.py")],
        capture_output=True, text=True, check=False, timeout=120, env=environment,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-3000:]
    for errors in json.loads(process.stdout):
        assert errors["core"] > 2.0**-20  # more than sums in float32 have
        assert errors["core"] / 4 < errors["model"] < 4 * errors["core"]
