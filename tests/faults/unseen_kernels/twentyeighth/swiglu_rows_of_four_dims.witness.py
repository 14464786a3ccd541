"""Halves of a projection in four dimensions, some of the heads."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_rows_of_four_dims.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


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
        print("ordinary", dtype, shape, error := error_of(x, torch.randn_like(x)))
        assert error < 3 * torch.finfo(dtype).eps + 1e-5

x = torch.randn(2, 6, 5, 64)
print("halves", error_of(*x.chunk(2, -1)), "three dims", error_of(*x[0, :4].chunk(2, -1)))
print("less rows", error_of(*x[:, :, :3].chunk(2, -1)), "transposed", error_of(x.mT, x.mT))
print("batches exchanged", error_of(*x.transpose(0, 1).chunk(2, -1)))
error = error_of(*x[:, :4].chunk(2, -1))

print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
