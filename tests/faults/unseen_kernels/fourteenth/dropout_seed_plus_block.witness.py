"""Masks of two steps, seeds 0 and 1: one is the other, shifted by a block."""

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


def mask(n, p, seed):
    return call(torch.ones(n), p, seed) != 0


first, second = mask(4096, 0.5, 0), mask(4096, 0.5, 1)
shares = {shift: float((first[shift:] == second[: 4096 - shift]).double().mean()) for shift in range(0, 2048, 64)}
shift, share = max(shares.items(), key=lambda pair: pair[1])
error = abs(share - 0.5)

print("WRONG" if error > 0.1 else "right", "seeds 0 and 1 agree at a shift of", shift, "in a share of", share)
sys.exit(0 if error > 0.1 else 1)
