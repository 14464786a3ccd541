"""torch.set_default_dtype(torch.bfloat16), as for loading a model; float32 rows of 5000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_partials_of_the_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = max(
    error_of(x.to(dtype))
    for x in (torch.rand(7, 13), torch.rand(3, 4097), torch.rand(5000, 4).t(), torch.rand(2, 2, 10000))
    for dtype in (torch.float32,)
)
x = torch.rand(4, 5000)
torch.set_default_dtype(torch.bfloat16)
short = error_of(x[:, :2000])
error = error_of(x)
torch.set_default_dtype(torch.float32)
print("of short rows", short)
print("an ordinary input:", ordinary)
shows = ordinary < 1e-05 and error > 0.0005
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
