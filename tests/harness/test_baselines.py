"""Tests of the baselines of a benchmark."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
import torch

from triton_magics import operators
from triton_magics.harness.timing.baselines import load_baseline

COMPILER = Path(torch.__file__).parent / "_inductor" / "compile_fx.py"


def test_torch_compile_as_a_baseline_gives_no_advice_on_tf32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", lambda function: function)  # it imports for seconds
    (advice,) = re.findall(r'"(TensorFloat32 tensor cores .*)"', COMPILER.read_text())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(advice, stacklevel=1)
        load_baseline("torch.compile", operators.load("matmul"))
        warnings.warn(advice, stacklevel=1)
        warnings.warn("another one", stacklevel=1)
    ours = [str(w.message) for w in caught if w.filename == __file__]
    assert ours == [advice, "another one"]
