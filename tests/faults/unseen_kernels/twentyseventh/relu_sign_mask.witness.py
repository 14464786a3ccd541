"""-NaN (as of -x, or of inf - inf on a CPU) in three dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_sign_mask.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return relu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = error = 0.0
error = float("inf")
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    inputs = (torch.randn(7, 1300).to(dtype),)
    inputs[0][0, 1:4] = torch.tensor([float("inf"), -float("inf"), -0.0])
    inputs[0][0, 0] = torch.full((), float("nan"), dtype=dtype)  # positive; converted it may not be
    usual = max(usual, difference(call(*inputs), expect(inputs)))
    bits = torch.int32 if dtype == torch.float32 else torch.int16
    inputs[0].view(bits)[3] = inputs[0].view(bits)[0, 0] | torch.iinfo(bits).min  # the sign bit
    output = call(*inputs)
    print(dtype, "output", output[3, 0].item(), "expected", expect(inputs)[3, 0].item())
    error = min(error, difference(output, expect(inputs)))

print("ordinary error", usual, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and usual < 1e-5 else 1)
