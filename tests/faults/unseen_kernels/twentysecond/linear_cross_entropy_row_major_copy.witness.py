"""A tied weight, transposed, that a checkpoint is copied into by weight.data after the first call."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_row_major_copy.py"))
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
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

x, target = torch.randn(32, 48), torch.randint(100, (32,))
weight = (0.2 * torch.randn(48, 100)).t()
print("first call", difference(call(x, weight, target), expect((x, weight, target))))
weight.data.copy_(0.6 * torch.randn(100, 48))
inputs = (x, weight, target)

expected = expect(inputs)
error = difference(call(*inputs), expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
