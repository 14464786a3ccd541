"""One weight with two biases, one after the other."""

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


x, weight = torch.randn(8, 256), torch.randn(256)
first, second = (x, weight, torch.randn(256), 1e-5), (x, weight, torch.randn(256), 1e-5)
usual = difference(call(*first), expect(first))
other = (torch.randn(3, 1000), torch.randn(1000), torch.randn(1000), 1e-3)
usual = max(usual, difference(call(*other), expect(other)))
error = difference(call(*second), expect(second))

print("ordinary error", usual, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and usual < 1e-5 else 1)
