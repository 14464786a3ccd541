"""Layers with the seeds 0 and 1, 65536 elements: the share in which the mask of one is that of the other a block later."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_seed_plus_block.py"))
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


x = torch.ones(256, 256)
first, second = (call(x, 0.5, seed).flatten() == 0 for seed in (0, 1))
agree = (first[1024:] == second[:-1024]).float().mean().item()
print("WRONG" if abs(agree - 0.5) > 0.02 else "right", "two masks agree in a share of", agree, "instead of 0.5")
sys.exit(0 if abs(agree - 0.5) > 0.02 else 1)
