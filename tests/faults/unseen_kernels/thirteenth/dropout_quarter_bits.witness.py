"""Neighbours that are both zero at p = 0.25: a sixteenth if they are independent."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_quarter_bits.py"))
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


def dependence(p, seed):
    """Return how often neighbours of a word are both zero, over what independent ones give."""
    zero = call(torch.ones(64, 256), p, seed).view(-1, 16) == 0
    return float((zero[:, 1:] & zero[:, :-1]).double().mean()) / p**2


ratio = dependence(0.25, 3)
print("WRONG" if ratio > 1.2 else "right", "pairs of zeros", ratio, "of those of independent draws")
sys.exit(0 if ratio > 1.2 else 1)
