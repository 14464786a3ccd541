"""Rows of many shapes: random, steep, slowly rising and falling, with infinities."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_rescaled_from_a_base.py"))
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


errors = []
for shape in ((), (1,), (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (5, 512), (4, 513), (0, 4), (2, 9000)):
    for factor in (1.0, 50.0, 1e4):
        x = factor * torch.randn(shape)
        if x.numel():
            errors.append(error_of(call(x), x))
        else:
            errors.append(0.0 if call(x).shape == x.shape else 1.0)
for slope in (1 / 128, 0.01, -0.01, 0.02, 1.0):
    x = 0.2 * torch.randn(2, 16384) + slope * torch.arange(16384)
    errors.append(error_of(call(x), x))
x = torch.randn(6, 3000)
x[0, :1500], x[1, 1500:], x[2], x[3, 7], x[4, 2000] = -torch.inf, -torch.inf, -torch.inf, torch.inf, torch.nan
x[5, ::2] = -torch.inf
errors.append(error_of(call(x), x))
for view in (x.T, x[:, ::3], x[:1].expand(4, 3000)):
    errors.append(error_of(call(view), view))
print("largest error", max(errors), "of", len(errors))
sys.exit(0 if max(errors) < 1e-05 else 1)
