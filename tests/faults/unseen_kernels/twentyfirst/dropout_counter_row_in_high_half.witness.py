"""Eight rows of 100,000 elements: the share of elements whose mask is that of the next row, 65536 columns earlier."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_counter_row_in_high_half.py"))
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


drops = call(torch.ones(8, 100_000), 0.5, 3) == 0
agree = (drops[:-1, 65536:] == drops[1:, : 100_000 - 65536]).float().mean().item()
print("WRONG" if abs(agree - 0.5) > 0.02 else "right", "two parts of the mask agree in a share of", agree, "instead of 0.5")
sys.exit(0 if abs(agree - 0.5) > 0.02 else 1)
