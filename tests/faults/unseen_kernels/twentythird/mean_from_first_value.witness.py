"""Rows whose first value is Inf, or is 1e8 beside ones."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_from_first_value.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


inputs = (torch.randn(7, 1000) + 3,)
usual = difference(call(*inputs), expect(inputs))
x = torch.ones(3, 65536)
x[:, 0] = torch.tensor([1e8, 3e8, -1e8])
print("large first values: error", difference(call(x), expect((x,))), "torch in float32", difference(x.mean(-1), expect((x,))))
x = torch.randn(7, 1000)
x[2, 0] = float("inf")
inputs = (x,)
error = difference(call(*inputs), expect(inputs))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
