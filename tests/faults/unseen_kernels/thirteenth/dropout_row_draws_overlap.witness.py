"""Three rows of 16384: the second half of each beside the first half of the next."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_row_draws_overlap.py"))
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


mask = call(torch.ones(3, 16384), 0.5, 7) != 0
equal = float((mask[:-1, 8192:] == mask[1:, :8192]).double().mean())
print("WRONG" if equal > 0.6 else "right", "equal", equal, "of the draws, 0.5 expected")
sys.exit(0 if equal > 0.6 else 1)
