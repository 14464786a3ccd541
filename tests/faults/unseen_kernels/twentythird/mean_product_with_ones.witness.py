"""Shapes, layouts, and values that are not finite."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_product_with_ones.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def tolerance(dtype):
    return {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[dtype]


worst, tries = 0.0, 0


def check(dtype, *inputs):
    global worst, tries
    tries += 1
    worst = max(worst, difference(call(*inputs), expect(inputs)) / tolerance(dtype))


make = torch.Generator().manual_seed(0)
cpu = torch.device("cpu")

for dtype in (torch.float32, torch.float16):  # the interpreter's tl.dot takes no bfloat16
    for shape in mean.SHAPES:
        check(dtype, *mean.make_inputs(shape, dtype, cpu, make))
    x = (torch.randn(37, 200) + 1).to(dtype)
    check(dtype, x[::2, ::3])
    check(dtype, x.t())
    check(dtype, x.t().reshape(2, 100, 37).transpose(0, 2))
    check(dtype, x[:1].expand(37, 200))
    check(dtype, x[:, :1].expand(37, 200))
    check(dtype, x[0])
    check(dtype, (torch.rand(3, 5000) * 6e4).to(dtype))
    check(dtype, (torch.rand(3, 5000) * 1e-2).to(dtype))
    x[3, 7], x[5, 8], x[6, 9], x[7, 0] = (float(v) for v in ("inf", "-inf", "nan", "-inf"))
    x[7, 1] = float("inf")
    check(dtype, x)

print("right" if worst < 1 else "WRONG", tries, "inputs; the largest error is", worst, "of what is allowed")
sys.exit(0 if worst < 1 else 1)
