"""The two halves of a mask with p = 0.5, and with p = 0.2."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_antithetic_halves.py"))
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


m = mask(4096, 0.5, 3)
share = float((m[:2048] == m[2048:]).double().mean())
few = ~mask(4096, 0.2, 3)
both = float((few[:2048] & few[2048:]).double().mean())
print("p = 0.2: both dropped in a share of", both, "instead of 0.04")
error = abs(share - 0.5)

print("WRONG" if error > 0.1 else "right", "the halves agree in a share of", share, "instead of 0.5")
sys.exit(0 if error > 0.1 else 1)
