"""The first two thirds of rows of 3 * d; before, both halves of rows of 2 * d."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_packed_halves.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = 0.0
for inputs in ((torch.randn(7, 129), torch.randn(7, 129)), torch.randn(2, 5, 2 * 129).chunk(2, dim=-1)):
    usual = max(usual, difference(call(*inputs), expect(inputs)))
inputs = torch.randn(7, 3 * 129).chunk(3, dim=-1)[:2]
error = difference(call(*inputs), expect(inputs))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 1e-06 and error > 0.02 else 1)
