"""A weight that is changed through weight.data between two calls."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_packed_parameters.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
usual = max(compare(torch.randn(*s), torch.randn(s[-1]), torch.randn(s[-1])) for s in ((7, 13), (3, 4097), (127, 129)))
x, weight, bias = torch.randn(64, 300), torch.randn(300), torch.randn(300)
usual = max(usual, compare(x, weight, bias))
weight.mul_(3.0)  # counted
usual = max(usual, compare(x, weight, bias))
weight.data.mul_(-2.0)  # not counted
error = compare(x, weight, bias)

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
