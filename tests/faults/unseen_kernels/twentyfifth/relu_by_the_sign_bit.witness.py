"""A NaN with its sign bit set, as 0 * inf gives it on x86, or the negative of a NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_by_the_sign_bit.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return relu.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = max(
    error_of(x.to(dtype))
    for x in (torch.randn(7, 13), torch.randn(3, 4097).t(), torch.tensor([-0.0, float("nan"), float("inf"), -float("inf")]))
    for dtype in (torch.float32, torch.float16, torch.bfloat16)
)
bits = torch.tensor([0x3F800000, -(2**31) + 0x7FC00000], dtype=torch.int32)
x = bits.view(torch.float32)
print(x, "gives", call(x), "and torch", torch.relu(x))
error = error_of(x)
print("an ordinary input:", ordinary)
shows = ordinary < 1e-06 and error > 0.02
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
