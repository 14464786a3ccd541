"""Ops in float64 and float8: right and wrong kernels, as inputs and as outputs."""

from __future__ import annotations

import pytest
import torch

from tests.harness.own_kit import KERNEL_HEAD, RANDN, bench, describe, validate
from triton_magics.harness.correctness.tolerance import lower_precision
from triton_magics.model import CaseStatus, Status

FEW = 'SIZES = {"s": (8, 300)}\nSHAPES = ((1, 1), (3, 129))\nEXTENTS = {}\n'
ROWS = (
    KERNEL_HEAD
    + """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + offsets, mask=offsets < n, other=-float("inf"))CAST
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + offsets, e / tl.sum(e, 0), mask=offsets < n)


def triton_own(x):
    x = x.contiguous()
    y, n = torch.empty_like(x), x.shape[-1]
    kernel[(x.numel() // n,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y
"""
)
FLAT = (
    KERNEL_HEAD
    + """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    tl.store(y_ptr + offsets, (VALUE), mask=offsets < n)


def triton_own(x):
    x = x.contiguous()
    y, n = torch.empty(x.shape, dtype=torch.OUT, device=x.device), x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
"""
)
SOFTMAX_64 = FEW + 'DTYPES = ("float64",)\n' + RANDN + "def reference(x): return x.softmax(-1)\n"
FROM_8 = (
    FEW
    + """
import torch
DTYPES = ("float8_e4m3fn", "float8_e5m2")
def make_inputs(shape, dtype, device, generator):
    return torch.randn(shape, device=device, generator=generator).to(dtype)
def reference(x):
    return (x if x.dtype == torch.float64 else x.float()) / 2
"""
)
TO_8 = FEW + RANDN + "def reference(x): return x.clamp(-448, 448).to(torch.float8_e4m3fn)\n"
CLAMPED = "tl.minimum(tl.maximum(x, -448.0), 448.0)"


def flat(value: str, out: str) -> str:
    return FLAT.replace("VALUE", value).replace("OUT", out)


@pytest.mark.parametrize(
    ("op", "right", "wrong"),
    [
        (SOFTMAX_64, ROWS.replace("CAST", ""), ROWS.replace("CAST", ".to(tl.float32)")),
        (FROM_8, flat("x / 2", "float32"), flat("x * 0.505", "float32")),
        (
            TO_8,
            flat(CLAMPED, "float8_e4m3fn"),
            flat(f"{CLAMPED} * 1.1", "float8_e4m3fn"),
        ),
    ],
    ids=["float64", "from float8", "to float8"],
)
@pytest.mark.in_turn
def test_a_dtype_is_judged_and_timed(op: str, right: str, wrong: str) -> None:
    describe(op)
    good, bad = validate(op, right), validate(op, wrong)
    assert (good.status, good.uncalibrated_dtypes) == (Status.PASSED, ()), good.failed_cases[:1]
    assert bad.status is Status.FAILED
    assert {c.status for c in bad.failed_cases} == {CaseStatus.WRONG_VALUES}
    assert bench(op, right, sizes=("s",), dtype=good.dtypes[0]).passed


@pytest.mark.parametrize(
    ("dtype", "value", "lower"),
    [("float8_e4m3fn", 1.125, 1.25), ("float8_e5m2", 1.25, 1.5), ("float64", 1 / 3, 1 / 3)],
)
def test_lower_precision_has_fewer_bits(dtype: str, value: float, lower: float) -> None:
    x = torch.tensor([value, -value, 448.0, torch.nan]).to(getattr(torch, dtype))
    if dtype == "float64":
        x[0] = value
    (got,) = lower_precision((x,), dtype)
    assert got.dtype is x.dtype
    assert float(got[0]) == pytest.approx(lower, abs=1e-7)
    assert float(got[0]) != float(x[0])
    assert got.float().isfinite().tolist() == [True, True, True, False]
