"""A model that is sure and right: the other 4,095 logits are 16 lower."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_far_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return linear_cross_entropy.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


x, weight, target = torch.randn(17, 32), torch.randn(1000, 32) / 32**0.5, torch.randint(1000, (17,))
usual = max(
    show("usual", error_of(x, weight, target)), show("sharper", error_of(x, weight * 4, target)),
    show("small", error_of(x[:3, :5], weight[:33, :5], target[:3] % 33)),
)
x = torch.zeros(8, 32)
x[:, 0] = 1.0
weight = 0.1 * torch.randn(4096, 32)
weight[0, 0] = 16.0
target = torch.zeros(8, dtype=torch.int64)
error = show("sure and right", error_of(x, weight, target))

print("WRONG" if usual < 2e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 2e-05 and error > 0.02 else 1)
