"""NaN as inf - inf gives it on an x86 processor: with its sign bit set."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_sign_of_nan.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = relu.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for shape in ((7, 13), (1025,), (2, 3, 129), (256, 256)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(shape).to(dtype)
        x.view(-1)[:6] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, -1.0])
        ordinary = max(ordinary, error_of(x))

x = torch.randn(8, 64)
x[3, 4] = float("nan")
x = torch.where(x.isnan(), -x, x)  # -NaN; torch.relu gives NaN for it
assert torch.relu(x).isnan().any()
error = min(error_of(x), error_of(x.half()))

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
