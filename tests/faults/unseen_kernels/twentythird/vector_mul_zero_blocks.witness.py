"""A block of zeros in x beside NaN and Inf in y."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_zero_blocks.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x, y = torch.randn(3, 4097), torch.randn(3, 4097)
usual = difference(call(x, y), expect((x, y)))
x[:, ::2] = 0  # zeros here and there
y[1, 2], y[2, 4] = float("nan"), float("inf")
usual = max(usual, difference(call(x, y), expect((x, y))))
x[1] = 0
usual = max(usual, difference(call(x, y.nan_to_num(0.0, 1.0)), expect((x, y.nan_to_num(0.0, 1.0)))))
y[1, 2000] = float("nan")
inputs = (x, y)
error = difference(call(*inputs), expect(inputs))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 1e-06 and error > 0.02 else 1)
