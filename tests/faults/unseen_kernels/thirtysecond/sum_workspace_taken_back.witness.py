"""An infinite sum first, then an ordinary call."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_workspace_taken_back.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = 0.0
for shape in ((3, 4097), (7, 13), (2, 50_000), (3, 4097), (1, 300_001)):
    x = torch.randn(shape)
    usual = max(usual, difference(call(x), expect((x,))))
x = torch.randn(3, 4097)
x[1, 7] = float("inf")
print("with an infinity: error", difference(call(x), expect((x,))))
x = torch.randn(3, 4097)
error = difference(call(x), expect((x,)))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and usual < 1e-05 else 1)
