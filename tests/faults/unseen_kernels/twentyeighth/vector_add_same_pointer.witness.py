"""A square matrix plus its transpose; a matrix plus its first row."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_same_pointer.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


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
        print("ordinary", dtype, shape, error := error_of(x, torch.randn_like(x), 0.5))
        assert error < 3 * torch.finfo(dtype).eps + 1e-5

x = torch.randn(64, 64)
print("x and x", error_of(x, x, 0.5))
print("first row", error_of(x, x[:1].expand(64, 64), 1.0))
error = error_of(x, x.t(), 1.0)

print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
