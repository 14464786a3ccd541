"""Varied shapes, dtypes and values, in a changing order, NaN and Inf before others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_saved_partials.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs):
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


shapes = ((3, 4097), (1, 1), (7, 13), (1025,), (2, 3, 129), (127, 129), (300, 5), (1, 9000))
worst = 0.0
for turn in range(2):
    for shape in shapes[::2] if turn else shapes[::-1]:
        for dtype, limit in ((torch.float32, 1e-5), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
            x = torch.randn(shape).to(dtype)
            if turn == 0 and x.numel() > 50:
                x.view(-1)[3] = float("nan")
                x.view(-1)[-1] = float("inf")
            error = error_of(x)
            worst = max(worst, error / limit)
for x in (torch.randn(100, 40).T, torch.randn(50, 60)[::2, ::3], torch.randn(1, 30).expand(9, 30)):
    worst = max(worst, error_of(x) / 1e-5)
print("worst error as a part of the limit", worst)
sys.exit(0 if worst < 1 else 1)
