"""Rows of a whose values are below 2^-6."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_subnormal_decode.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() and x.dtype.itemsize > 1 else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def ordinary(m, n, k):
    return fp8_matmul.make_inputs((m, n, k), torch.float16, torch.device("cpu"), torch.Generator().manual_seed(0))


usual = max(difference(call(*x), expect(x)) for x in (ordinary(65, 127, 129), ordinary(7, 5, 13)))
_, b, scale_a, scale_b = ordinary(16, 32, 64)
a = (torch.randn(16, 64) * 0.004).to(torch.float8_e4m3fn)
inputs = (a, b, torch.full_like(scale_a, 100.0), scale_b)
error = difference(call(*inputs), expect(inputs))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and usual < 0.002 else 1)
