"""Rows of 200 values, each row a tenth of the row before."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_prefix_sums.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(rows, m, dtype=torch.float32):
    return torch.randn(rows, m).to(dtype), torch.randn(m).to(dtype), 1e-6


for rows, m, dtype in (
    (7, 13, torch.float32), (127, 129, torch.float32), (1000, 1, torch.float32), (33, 256, torch.float32),
    (127, 129, torch.float16), (127, 129, torch.bfloat16), (3, 1025, torch.float32),
):
    ordinary = draw(rows, m, dtype)
    print("ordinary error", rows, m, dtype, difference(call(*ordinary), expect(ordinary)))

x, weight, eps = draw(16, 200)
rising = (x * 10.0 ** torch.arange(-8.0, 8.0)[:, None], weight, eps)
print("rising rows, error", difference(call(*rising), expect(rising)))
inputs = (x * 10.0 ** torch.arange(4.0, -4.0, -1.0).repeat(2)[:, None], weight, eps)
out, expected = call(*inputs), expect(inputs)
print("by row", [round(difference(o, e), 4) for o, e in zip(out, expected)])
error = difference(out, expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
