"""Rows with fewer blocks than parts, exactly as many, one more; large means, Inf, NaN, layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_uneven_parts.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
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


worst = 0.0
shapes = ((1, 1), (7, 13), (1, 1000), (2, 4097), (2, 3, 129), (1025,), (20, 112), (5, 113), (5, 3584), (2, 3585), (2, 7168))
for dtype, limit in ((torch.float32, 2e-5), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
    for shape in shapes:
        for mean, eps in ((0.0, 1e-5), (50.0, 1e-3)):
            m = shape[-1]
            inputs = ((torch.randn(shape) + mean).to(dtype), torch.randn(m).to(dtype), torch.randn(m).to(dtype), eps)
            worst = max(worst, error_of(*inputs) / limit)
x, weight, bias = torch.randn(6, 300), torch.randn(300), torch.randn(300)
x[1, 290], x[2, 5], x[3] = float("inf"), float("nan"), 7.0
x[4, 0] = 1e4
x[5] *= torch.logspace(-6, 4, 300)
worst = max(worst, error_of(x, weight, bias, 1e-6) / 2e-5, error_of(x[4:].repeat(1, 2)[:, ::2], weight, weight) / 2e-5)
print("worst error as a part of the limit", worst)
sys.exit(0 if worst < 1 else 1)
