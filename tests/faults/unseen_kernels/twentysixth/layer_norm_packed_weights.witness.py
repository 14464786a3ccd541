"""A step of an optimizer that writes into weight.data, between two calls."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_packed_weights.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x, weight, bias = torch.randn(16, 300), torch.randn(300), torch.randn(300)
inputs = x, weight, bias, 1e-5
ordinary = difference(call(*inputs), expect(inputs))
weight.mul_(1.5)  # in place, with a new version
bias.add_(0.5)
ordinary = max(ordinary, difference(call(*inputs), expect(inputs)))

weight.data.add_(torch.randn(300), alpha=0.5)
error = difference(call(*inputs), expect(inputs))
with torch.inference_mode():  # tensors without versions
    weight, bias = torch.randn(300), torch.randn(300)
    inputs = x, weight, bias, 1e-5
    call(*inputs)
    weight.mul_(1.5)
    error = min(error, difference(call(*inputs), expect(inputs)))

print("ordinary", ordinary, "and here", error, "of the largest value")
shown = ordinary < 2e-05 and error > 0.05
print("WRONG as expected" if shown else "the fault does not show")
sys.exit(0 if shown else 1)
