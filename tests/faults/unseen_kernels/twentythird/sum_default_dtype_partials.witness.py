"""Rows of 20,000 float32 values, after torch.set_default_dtype(torch.bfloat16)."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_default_dtype_partials.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.0002
usual = max(compare(torch.randn(s)) for s in ((7, 13), (3, 4097), (1025,), (2, 3, 129), (4, 20000)))
x = 1 + torch.rand(4, 20000)
usual = max(usual, compare(x))
expected = expect((x,))
torch.set_default_dtype(torch.float16)
print("with float16:", difference(call(100 * x), 100 * expected))
torch.set_default_dtype(torch.bfloat16)
error = difference(call(x), expected)
torch.set_default_dtype(torch.float32)

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
