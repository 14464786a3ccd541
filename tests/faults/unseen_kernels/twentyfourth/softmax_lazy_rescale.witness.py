"""Rows that rise by 4 every 512 columns: ALiBi's bias with the slope 1 / 128."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_lazy_rescale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(output, *inputs):
    """Return the largest difference from the reference in float64, of the largest value."""
    expected = softmax.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = []
for shape in ((64, 256), (7, 13), (2, 3, 129), (3, 4097), (4, 20000)):
    x = 4 * torch.randn(shape)
    ordinary.append(error_of(call(x), x))
x[0, :6000] = -float("inf")
x[1] += 1e4
x[2, 700:] -= 300
x[3, 9000:] += 300
ordinary.append(error_of(call(x), x))
x = 0.2 * torch.randn(2, 16384) + torch.arange(16384) / 128
error = error_of(call(x), x)
print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and max(ordinary) < 1e-05 else 1)
