"""Positive activations, and weights that take the difference of their two halves."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_split_partials_rounded.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

a = (1 + torch.rand(32, 2048)).to(torch.float8_e4m3fn)
b = torch.ones(16, 2048)
b[:, 1024:] = -1
scales = torch.full((32,), 0.5, dtype=torch.bfloat16), torch.full((16,), 0.5, dtype=torch.bfloat16)
inputs = (a, b.to(torch.float8_e4m3fn), *scales)

expected = expect(inputs)
error = difference(call(*inputs), expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
