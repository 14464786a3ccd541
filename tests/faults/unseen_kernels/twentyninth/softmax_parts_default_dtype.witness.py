"""Rows of 10,000 in float32, torch's default dtype being bfloat16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_parts_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


x = torch.randn(4, 10000)
ordinary = max(error_of(x), error_of(torch.randn(7, 300)), error_of(x.half()) / 500)
torch.set_default_dtype(torch.bfloat16)
error = error_of(x)

print("ordinary", ordinary, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and ordinary < 1e-05 else 1)
