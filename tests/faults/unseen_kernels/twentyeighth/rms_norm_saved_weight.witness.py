"""A weight in bfloat16 that is changed through .data between two calls."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_saved_weight.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)

for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((7, 13), (3, 4097), (257, 1023), (2, 3, 129)):
        x = torch.randn(shape, dtype=dtype)
        print("ordinary", dtype, shape, error := error_of(x, torch.randn(shape[-1], dtype=dtype), 1e-5))
        assert error < 3 * torch.finfo(dtype).eps + 1e-5

x, weight = torch.randn(16, 256).bfloat16(), torch.randn(256).bfloat16()
print("first call", error_of(x, weight, 1e-5))
weight.mul_(-2)
print("changed in place", error_of(x, weight, 1e-5))
print("another weight", error_of(x, weight * 3, 1e-5))
weight.data.mul_(-2)  # a kernel that writes the weight does not move the counter either
error = error_of(x, weight, 1e-5)

print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
