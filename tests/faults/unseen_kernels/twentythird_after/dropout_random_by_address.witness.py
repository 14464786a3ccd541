"""A row of 512 values, expanded to 256 rows."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_random_by_address.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return dropout.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def judge(x, p):
    out = call(x, p, 5)
    mask = out != 0
    scaled = torch.where(mask, x.double() / (1 - p), 0.0)
    rate = float(mask.double().mean())
    alike = float((mask[0] == mask[1]).double().mean())
    print(tuple(x.stride()), "error of the mask", difference(out, scaled), "kept", rate, "of two rows alike", alike)
    return rate, alike


p = 0.5
rates = [judge(torch.randn(256, 512), p), judge(torch.randn(512, 256).t(), p), judge(torch.randn(256, 600)[:, :512], p)]
ordinary = all(abs(rate - 0.5) < 0.01 and abs(alike - 0.5) < 0.15 for rate, alike in rates)
print("ordinary", "right" if ordinary else "wrong")
rate, alike = judge(torch.randn(512).expand(256, 512), p)
wrong = ordinary and alike == 1.0
print("WRONG" if wrong else "right", "two rows agree in", alike)
sys.exit(0 if wrong else 1)
