"""Rows of 20,000 elements: the end of a row beside the start of others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_row_offsets.py"))
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

mask = call(torch.ones(4, 20000), 0.5, 3) != 0
rows, cols = mask.shape
worst = 0.0
for one in range(rows):
    for other in range(one + 1, rows):
        for start in range(16384, cols - 999, 1024):
            agree = (mask[one, start : start + 1000] == mask[other, :1000]).double().mean()
            worst = max(worst, float(abs(agree - 0.5)))
rate = float(mask.double().mean())
print("WRONG" if worst > 0.1 else "right", "agreement is", worst, "off a half; rate", rate)
sys.exit(0 if worst > 0.1 else 1)
