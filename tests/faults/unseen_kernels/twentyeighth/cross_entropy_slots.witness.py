"""Losses of 70 steps, all kept."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_slots.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return cross_entropy.reference(*map(wide, inputs))


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
    for shape in ((7, 13), (3, 4097), (257, 1023), (1000, 1)):
        x = torch.randn(shape, dtype=dtype)
        print("ordinary", dtype, shape, error := error_of(x, torch.randint(shape[1], shape[:1])))
        assert error < 3 * torch.finfo(dtype).eps + 1e-5

steps = [(torch.randn(8, 32) * (1 + i), torch.randint(32, (8,))) for i in range(70)]
losses = [call(*inputs) for inputs in steps]
print("the last 64", max(difference(o, expect(i)) for o, i in list(zip(losses, steps))[-64:]))
error = difference(losses[0], expect(steps[0]))

print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
