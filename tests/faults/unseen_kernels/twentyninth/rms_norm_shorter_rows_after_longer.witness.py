"""Rows of 5000 after rows of 20,000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_shorter_rows_after_longer.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
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


weight = torch.randn(20000)
short, long = torch.randn(3, 5000), torch.randn(3, 20000)
ordinary = max(
    error_of(torch.randn(5, 300), weight[:300], 1e-5),
    error_of(short, weight[:5000], 1e-5),
    error_of(long, weight, 1e-5),
)
error = error_of(short, weight[:5000], 1e-5)

print("ordinary", ordinary, "of the largest value")
print("WRONG" if error > 0.01 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.01 and ordinary < 1e-05 else 1)
