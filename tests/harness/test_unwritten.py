"""Tell elements of an output that no kernel stores to from NaN that a kernel computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import run_cases
from triton_magics.model import Case, CauseCode

pytestmark = pytest.mark.in_turn

KERNEL = '''"""A relu.

op: relu
status: failed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.maximum(x, 0.0), mask=at < n)


@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr + at, tl.maximum(x, 0.0), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    n = x.numel()
    out = torch.empty(n, dtype=x.dtype, device=x.device).view(x.shape)
    kernel[(triton.cdiv(n, 32),)](x, out, n, BLOCK=32)
    return out
'''
CASE = Case(shape=(7, 13), dtype="float32", seed=1)


STORE = "tl.maximum(x, 0.0), mask=at < n)"


def cause_of(folder: Path, old: str, new: str, dtype: str) -> tuple[CauseCode | None, int]:
    """Return the cause for a kernel with a change, and the number of wrong elements."""
    assert old in KERNEL
    (path := folder / "kernel.py").write_text(KERNEL.replace(old, new, 1))
    (result,) = run_cases(path, CASE.evolve(dtype=dtype))
    assert result.mismatch
    return result.mismatch.cause and result.mismatch.cause.code, result.mismatch.n_wrong


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("old", "new", "n_wrong"),
    [
        ("triton.cdiv(n, 32),", "n // 32,", 7 * 13 - 64),
        (STORE, "tl.maximum(x, 0.0), mask=at < n - 5)", 5),
    ],
)
def test_what_no_store_writes_is_the_cause(
    old: str, new: str, n_wrong: int, dtype: str, tmp_path: Path
) -> None:
    assert cause_of(tmp_path, old, new, dtype) == (CauseCode.UNWRITTEN, n_wrong)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("out_ptr + at, tl.maximum", "out_ptr + (at // 2) * 2, tl.maximum"),  # others are wrong too
        ("kernel[(triton", "add_kernel[(triton"),  # atomic additions to memory that was not set
        ("kernel[(triton.cdiv(n, 32),)](x,", "kernel[(triton.cdiv(n, 32),)](torch.empty_like(x),"),
        (STORE, "tl.sqrt(x - 100.0), mask=at < n)"),
    ],
)
def test_nan_that_a_kernel_stores_is_none_of_that(old: str, new: str, tmp_path: Path) -> None:
    code, n_wrong = cause_of(tmp_path, old, new, "float32")
    assert code is not CauseCode.UNWRITTEN
    assert n_wrong > 20
