"""Rows of 5 parts, then rows of 8."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_tickets_never_reset.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = sum.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for shape in ((7, 13), (3, 4097), (2, 3, 129), (257, 1023), (2, 20000), (2, 20000), (3, 20000)):
    ordinary = max(ordinary, error_of(torch.randn(shape)))

error = error_of(torch.randn(3, 32768))

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
