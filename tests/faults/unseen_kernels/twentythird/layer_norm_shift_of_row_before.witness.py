"""A row near 10,000, and rows near 0 after it."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_shift_of_row_before.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
weight, bias = torch.randn(1024), torch.randn(1024)
usual = compare(torch.randn(32, 1024), weight, bias)
usual = max(usual, compare(torch.randn(32, 1024) + 1000.0, weight, bias))
usual = max(usual, compare(torch.randn(3, 4097), torch.randn(4097), torch.randn(4097)))
x = torch.randn(16, 1024)
x[3] += 10000.0
error = compare(x, weight, bias)

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
