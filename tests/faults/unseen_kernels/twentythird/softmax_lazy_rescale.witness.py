"""Rows of 8192 values that rise evenly from 0 to 120."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_lazy_rescale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
usual = max(compare(torch.randn(s)) for s in ((7, 13), (3, 4097), (4, 8192), (127, 129)))
jump = torch.randn(4, 8192)
jump[:, 4000:] += 500.0  # a jump is right
usual = max(usual, compare(jump))
error = compare(torch.linspace(0, 120, 8192).repeat(2, 1))

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
