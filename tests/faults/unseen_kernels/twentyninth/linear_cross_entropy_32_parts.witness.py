"""140,000 classes; ordinary: 1,000, 5,000 and 40,000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_32_parts.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
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
    expected = linear_cross_entropy.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)


def draw(rows, classes, hidden):
    x, weight = torch.randn(rows, hidden), torch.randn(classes, hidden) / hidden**0.5
    return x, weight, torch.randint(classes, (rows,))


ordinary = max(error_of(*draw(7, 1000, 31)), error_of(*draw(33, 5000, 16)), error_of(*draw(1, 40_000, 8)))
x, weight, target = draw(2, 140_000, 8)
weight[135_000:] *= 8  # the last classes are the likely ones
error = error_of(x, weight, target)

print("ordinary error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.0001 and error > 0.02 else 1)
