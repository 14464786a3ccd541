"""The first half of the rows is 1e5 times as large as the second."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_seven_products.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = 0.0
for (m, n, k), dtype in (((65, 127, 129), torch.float32), ((127, 65, 257), torch.float16), ((7, 5, 13), torch.float32)):
    inputs = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
    usual = max(usual, difference(call(*inputs), expect(inputs)) / (1 if dtype == torch.float32 else 500))
a, b = torch.randn(64, 64), torch.randn(64, 64)
a[:32] *= 1e5
b[:, :32] *= 1e3
small = call(a, b)[32:, 32:]
print("torch in float32 there:", difference((a @ b)[32:, 32:], expect((a, b))[32:, 32:]))
error = difference(small, expect((a, b))[32:, 32:])

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and usual < 1e-05 else 1)
