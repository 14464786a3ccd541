"""A column that is expanded to 300 columns; x is written to after the call."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_of_repeated_column.py"))
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

ordinary = (torch.randn(7, 1000),)
print("ordinary error", difference(call(*ordinary), expect(ordinary)))

x = torch.randn(64, 1).expand(64, 300)
expected = expect((x,))
out = call(x)
print("error when it is returned", difference(out, expected))
x[:, :1].mul_(2.0)  # the next batch is written into the buffer
error = difference(out, expected)
print("WRONG" if error > 0.1 else "right", "error after x was written to", error)
sys.exit(0 if error > 0.1 else 1)
