"""Rows of 10,000 elements (three parts), then rows of 20,000 (five)."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_ticket_goes_round.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    """Return the largest error, as a part of the largest expected value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs()
    size = size.max().clamp(min=1e-300) if size.numel() else 1.0
    return float(error.masked_fill(same, 0.0).max() / size) if error.numel() else 0.0


def error_of(*inputs):
    expected = mean.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)

ordinary = max(
    error_of(torch.randn(7, 13)), error_of(torch.randn(2, 3, 129)), error_of(torch.randn(5, 4096)),
    error_of(torch.randn(4, 10_000)), error_of(torch.randn(4, 10_000)), error_of(torch.randn(4, 9000)),
)
error = error_of(torch.randn(4, 20_000) + 1)

print("ordinary error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.0001 and error > 0.02 else 1)
