"""Shapes, views and values that are not finite, in all dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_one_hot_dot.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)
generator = torch.Generator().manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), sum.reference(*map(wide, inputs)))


def make(shape, dtype):
    return sum.make_inputs(shape, dtype, torch.device("cpu"), generator)


LIMIT = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}
errors = []
for dtype, limit in LIMIT.items():
    for shape in (*sum.SHAPES, (16, 64), (17, 65), (5, 0)):
        (x,) = make(shape, dtype)
        errors.append(error_of(x) / limit)
    x = torch.randn(100, 70).to(dtype)
    spoiled = x.clone()
    spoiled[3, 5], spoiled[17, 69], spoiled[18, 0] = float("inf"), float("nan"), float("-inf")
    spoiled[20, :2] = torch.tensor([float("inf"), float("-inf")])
    views = (x.T, x[::2, 1::3], x[:1].expand(40, 70), x[:, :1].expand(100, 33), spoiled, x * 100, x + 50)
    errors += [error_of(view) / limit for view in views]
print(len(errors), "inputs, largest share of the allowed error", max(errors))
sys.exit(0 if max(errors) < 1 else 1)
