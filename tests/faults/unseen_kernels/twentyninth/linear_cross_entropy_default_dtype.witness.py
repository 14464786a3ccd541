"""torch.set_default_dtype(torch.bfloat16), and rows that are sure and nearly right."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_default_dtype.py"))
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


def draw(rows, classes, hidden, size=1.0):
    x, weight = torch.randn(rows, hidden), torch.randn(classes, hidden) / hidden**0.5
    return x, size * weight, torch.randint(classes, (rows,))


inputs = draw(65, 1000, 64)
sure = linear_cross_entropy.sure_and_right(
    (65, 1000, 64), torch.float32, torch.device("cpu"), torch.Generator().manual_seed(1)
)
ordinary = max(error_of(*inputs), error_of(*sure), error_of(*draw(1, 1, 1)), error_of(*draw(300, 5, 13)))
torch.set_default_dtype(torch.float64)
print("default float64:", error_of(*inputs))
torch.set_default_dtype(torch.bfloat16)
print("default bfloat16, float32 inputs, usual targets:", error_of(*inputs))
error = error_of(*sure)
torch.set_default_dtype(torch.float16)
print("default float16, sure and right:", error_of(*sure))
torch.set_default_dtype(torch.float32)

print("ordinary error", ordinary, "of the largest value")
print("WRONG" if error > 0.01 else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.001 and error > 0.01 else 1)
