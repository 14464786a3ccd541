"""float32 in two limbs of float16: the accuracy and the range that its notebooks claim."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.nn import functional as F

from scripts import op_texts
from tests.harness.kit import CPU
from triton_magics.harness.process.fake_gpu import fake_gpu

BLOCKS = ((64, 64, 64), 4, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("limbs")


@cache
def limbs_of(op: str, folder: Path) -> ModuleType:
    path = folder / f"{op}_limbs.py"
    path.write_text(op_texts.kernels(op)["v3" if op == "gqa" else "v5_limbs"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def product(folder: Path, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty((a.shape[0], b.shape[1]))
    with fake_gpu(CPU):
        limbs_of("matmul", folder).multiply_in_limbs(a, b, out, *BLOCKS)
    return out


def attend(folder: Path, op: str, q, k, v, *causal: bool) -> torch.Tensor:
    out = torch.empty_like(q)
    with fake_gpu(CPU):
        limbs_of(op, folder).attend_in_limbs(q, k, v, out, *causal, 64, 64, 4, 3)
    return out


def error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the root mean square error relative to that of the expected values."""
    return ((got.double() - expected).norm() / expected.norm()).item()


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize(("m", "n", "k"), [(7, 5, 13), (65, 127, 129), (130, 72, 300)])
def test_a_product_is_as_accurate_as_two_limbs_can_be(folder, m, n, k):
    a, b = normal(m, k), normal(k, n)
    expected = a.double() @ b.double()
    assert error(product(folder, a, b), expected) < 2.4e-7
    assert error(product(folder, a.T.contiguous().T, b.T.contiguous().T), expected) < 2.4e-7
    assert error(a.half().float() @ b.half().float(), expected) > 1e-4  # what one limb gives


@pytest.mark.parametrize(("up", "down"), [(2.0**60, 2.0**-100), (2.0**-110, 2.0**100)])
def test_a_product_has_the_range_of_float32(folder, up, down):
    a, b = normal(20, 40), normal(40, 24)
    expected = (a.double() * up) @ (b.double() * down)
    assert error(product(folder, a * up, b * down), expected) < 2.4e-7


def test_rows_and_columns_have_separate_scales(folder):
    a = normal(30, 40) * torch.logspace(-12, 12, 30)[:, None]
    b = normal(40, 24) * torch.logspace(12, -12, 24)
    expected = a.double() @ b.double()
    scale = a.double().norm(dim=1)[:, None] * b.double().norm(dim=0)
    assert ((product(folder, a, b).double() - expected).abs() / scale).max() < 2.4e-7


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_not_finite_stays_in_its_row(folder):
    a, b = normal(8, 16), normal(16, 8)
    a[3, 5] = float("inf")
    got = product(folder, a, b)
    assert not got[3].isfinite().any()
    rest = torch.arange(8) != 3
    assert error(got[rest], a[rest].double() @ b.double()) < 2.4e-7


@pytest.mark.parametrize("shape", [(1, 1, 7, 64), (2, 3, 65, 32), (1, 2, 130, 16), (1, 1, 40, 20)])
@pytest.mark.parametrize("causal", [(), (False,), (True,)])
def test_attention_in_limbs_is_as_accurate_as_torch(folder, shape, causal):
    q, k, v = normal(*shape), normal(*shape[:2], *shape[2:]) * 2, normal(*shape) + 1
    op = "mha" if causal else "attention"
    is_causal = bool(causal and causal[0])
    expected = F.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), is_causal=is_causal
    )
    assert error(attend(folder, op, q, k, v, *causal), expected) < 6e-7
    halves = (x.half().float() for x in (q, k, v))
    assert error(F.scaled_dot_product_attention(*halves, is_causal=is_causal), expected) > 5e-5


@pytest.mark.parametrize("shape", [(1, 4, 1, 7, 64), (2, 6, 3, 65, 32), (1, 4, 2, 40, 20)])
@pytest.mark.parametrize("causal", [False, True])
def test_grouped_attention_in_limbs_is_as_accurate_as_torch(folder, shape, causal):
    batch, heads, kv_heads, *rest = shape
    q, k, v = (normal(batch, n, *rest) for n in (heads, kv_heads, kv_heads))
    v = v + 1
    expected = F.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), is_causal=causal, enable_gqa=True
    )
    assert error(attend(folder, "gqa", q, k, v, causal), expected) < 6e-7
