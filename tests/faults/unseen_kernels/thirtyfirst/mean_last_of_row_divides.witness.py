"""Shapes, dtypes, layouts and values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_last_of_row_divides.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = mean.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


errors = []
shapes = (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (257, 33), (300, 1), (2, 50000)
for shape in shapes:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for offset in (0.5, 100.0):
            errors.append(error_of((torch.randn(shape) + offset).to(dtype)))
errors.append(error_of(torch.randn(40, 70).T + 1))
errors.append(error_of(torch.randn(40, 5000)[::2, ::2] + 1))
errors.append(error_of(torch.randn(40, 1).expand(40, 3000)))
x = torch.randn(40, 3000)
x[3, 4], x[5, 6], x[7, 8] = float("nan"), float("inf"), -float("inf")
errors.append(error_of(x))

worst = max(errors)
print(len(errors), "inputs, largest error", worst)
sys.exit(0 if worst < 0.01 else 1)
