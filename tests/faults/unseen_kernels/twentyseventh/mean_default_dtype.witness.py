"""Eight rows of 20000 float32 values, with bfloat16 as torch's default dtype."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_default_dtype.py"))
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


inputs = (1 + torch.randn(8, 20000),)
usual = difference(call(*inputs), expect(inputs))
torch.set_default_dtype(torch.bfloat16)
error = difference(call(*inputs), expect(inputs))
short = (torch.randn(300, 1000, dtype=torch.float32),)
usual = max(usual, difference(call(*short), expect(short)))
torch.set_default_dtype(torch.float32)

print("ordinary error", usual, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and usual < 1e-5 else 1)
