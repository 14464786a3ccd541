"""A row of 1030, then one of 2000: both numbers have 11 bits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_stale_plan.py"))
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
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


shapes = [(1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (127, 129), (300, 1023), (3, 2000), (3, 1030)]
usual = max(show(str(shape), error_of(torch.randn(shape))) for shape in shapes)
module.plans.clear()
usual = max(usual, show("1030", error_of(torch.randn(3, 1030))))
error = show("then 2000", error_of(torch.randn(3, 2000)))

print("WRONG" if usual < 1e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
