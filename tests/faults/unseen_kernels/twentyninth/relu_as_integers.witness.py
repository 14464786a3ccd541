"""inf - inf is a NaN with a sign on x86; so is -nan."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_as_integers.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
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
    expected = relu.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)

x = torch.randn(37, 100)
x[0, :4] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
ordinary = max(error_of(x.to(dtype)) for dtype in (torch.float32, torch.float16, torch.bfloat16))
nan = -torch.tensor(float("nan"))
assert nan.isnan() and nan.view(torch.int32) < 0
for dtype in (torch.float32, torch.float16):
    x[1, 5] = nan
    inputs = x.to(dtype)
    print(dtype, "gives", call(inputs)[1, 5].item(), "for", inputs[1, 5].item())
infinity = torch.full((3,), float("inf"))
print("of inf - inf:", call(infinity - infinity).tolist())
error = error_of(x)

print("ordinary error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 1e-06 and error > 0.02 else 1)
