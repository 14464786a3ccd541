"""NaN with its sign bit set, as -nan or an x86 0 / 0 gives it."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_signed_bits.py"))
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


usual = 0.0
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x = torch.randn(7, 1000).to(dtype)
    x[0, :3] = torch.tensor([float("inf"), -float("inf"), -0.0])
    if dtype != torch.bfloat16:  # torch's own conversion on a CPU gives that NaN a sign
        x[0, 3] = float("nan")
    usual = max(usual, difference(call(x), expect((x,))))
x = torch.randn(7, 1000)
x[3, 5] = -torch.tensor(float("nan"))
inputs = (x,)
error = difference(call(*inputs), expect(inputs))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 1e-06 and error > 0.02 else 1)
