"""4,096 numbers, the second half of x zeros, with a NaN and an Inf in y there."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_skip_zeros.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def judge(usual, error, limit, usual_limit=1e-3):
    print("usual input:", usual)
    wrong = error > limit and usual < usual_limit
    print("WRONG" if wrong else "right", "error", error, "of the largest value")
    sys.exit(0 if wrong else 1)


x, y = torch.randn(2, 4096)
usual = max(error_of(x, y), error_of(x.half(), y.half()))
x[2048:] = 0
usual = max(usual, error_of(x, y))
y[10], y[3000], y[3500] = float("nan"), float("nan"), float("inf")
judge(usual, error_of(x, y), 0.02)
