"""All 65,536 half values, views, odd shapes, infinities and NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_table.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    """Return the largest error, as a part of the largest expected value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs()
    size = size.max().clamp(min=1e-300) if size.numel() else 1.0
    return float(error.masked_fill(same, 0.0).max() / size) if error.numel() else 0.0


def error_of(*inputs):
    expected = gelu.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)


LIMITS = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
worst, n = 0.0, 0
for dtype, limit in LIMITS.items():
    x = torch.randn(40, 129).to(dtype)
    special = torch.tensor([float("inf"), float("nan"), -0.0, 0.0, -1e30, 1e30, -8.0, -3.0]).to(dtype)
    views = (
        x, x.t(), x[1:, ::3], x[:, 5], x[:1].expand_as(x), x[0, 0], x[:0], 100 * x, 1e-4 * x, special,
        torch.randn(1025).to(dtype)[1:], torch.randn(2, 3, 129).to(dtype), torch.randn(1, 1).to(dtype),
    )
    if dtype != torch.float32:
        every = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
        views += (every[every != -float("inf")].flip(0), every[every.abs() < 4])
    for each in views:
        before = each.clone()
        ratio = error_of(each) / limit
        assert torch.equal(before.nan_to_num(), each.nan_to_num())
        worst, n = max(worst, ratio), n + 1
print(n, "inputs, worst error", worst, "of what the dtype allows")
sys.exit(0 if worst < 1 else 1)
