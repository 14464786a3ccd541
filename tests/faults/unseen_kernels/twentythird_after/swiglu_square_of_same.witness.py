"""gate and up are one tensor with a value of -1e20."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_square_of_same.py"))
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

x, y = torch.randn(127, 129), torch.randn(127, 129)
for size in (1.0, 100.0, 1e6):
    for dtype in (torch.float32, torch.bfloat16):
        a, b = (x * size).to(dtype), (y * size).to(dtype)
        print("ordinary error", size, dtype, difference(call(a, b), expect((a, b))), "one tensor", difference(call(a, a), expect((a, a))))

x[3, 4] = -1e20
print("a copy, error", difference(call(x, x.clone()), expect((x, x))), float(call(x, x.clone())[3, 4]))
out, expected = call(x, x), expect((x, x))
error = difference(out, expected)
print(float(out[3, 4]), float(expected[3, 4]), float(swiglu.reference(x, x)[3, 4]))
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
