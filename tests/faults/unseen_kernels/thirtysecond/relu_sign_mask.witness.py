"""NaN with its sign bit set, as 0 * inf gives it on x86; torch also makes such of NaN.to(bfloat16) on a CPU."""

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


usual = max(
    difference(call(x), expect((x,)))
    for dtype in (torch.float32, torch.float16, torch.bfloat16)
    for x in (torch.randn(257, 1023).to(dtype), torch.tensor([float("inf"), 1.0, -0.0, -float("inf")]).to(dtype))
)
x = torch.tensor([float("nan"), 1.0])
usual = max(usual, difference(call(x), expect((x,))))  # its sign bit is not set
x = torch.randn(64, 64)
x[3, 5] = -torch.tensor(float("nan"))
error = difference(call(x), expect((x,)))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and usual < 0.001 else 1)
