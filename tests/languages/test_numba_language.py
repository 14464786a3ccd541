"""Numba as a language from outside: one package, found by its entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.own_kit import validate
from triton_magics import languages
from triton_magics.errors import BadKernelSource
from triton_magics.execution.job_refs import OpRef
from triton_magics.model import CaseStatus, Validation

PACKAGE = Path(__file__).parents[2] / "examples" / "numba_language"
RELU = """
import torch
from numba import cuda

@cuda.jit
def relu_kernel(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = max(x[i], 0)

def numba_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    relu_kernel[(x.numel() + 63) // 64, 64](x.view(-1), out.view(-1))
    return out
"""


@pytest.fixture(autouse=True)
def numba_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    from triton_magics_numba import LANGUAGE

    languages.register(LANGUAGE)
    yield
    languages.unregister("numba")
    for name in [name for name in sys.modules if name.startswith("triton_magics_numba")]:
        del sys.modules[name]


def judge(source: str) -> Validation:
    pytest.importorskip("numba")
    return validate(
        OpRef(name="relu"), source, language="numba", shapes=((7, 13),), dtypes=("float32",)
    )


def test_the_parent_half_needs_no_numba() -> None:
    entry = languages.get("numba").parse(RELU, op="relu")
    assert entry == ("numba_relu", "(x)")
    with pytest.raises(BadKernelSource, match="no entry point: write def numba_relu"):
        languages.get("numba").parse(RELU.partition("def numba_relu")[0], op="relu")


@pytest.mark.slow  # 9 s: Numba's simulator has a Python thread for each of the GPU's
def test_launches_in_numba_are_judged() -> None:
    right = judge(RELU)
    assert right.passed
    assert right.triton_kernels == ("relu_kernel",)
    assert right.computed_by is not None
    wrong = judge(RELU.replace("max(x[i], 0)", "max(x[i], 0.01)"))
    assert wrong.failed_cases[0].status is CaseStatus.WRONG_VALUES
    torch_only = judge(RELU.replace("    relu_kernel[", "    return x.relu()\n    relu_kernel["))
    assert torch_only.failed_cases[0].status is CaseStatus.NOT_TRITON
