"""The two halves of each block of 1024: the share of pairs of which both survive."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_mirrored_draws.py"))
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

worst = 0.0
for p in (0.5, 0.3, 0.1):
    alive = call(torch.ones(64, 1024), p, 7) != 0
    both = float((alive[:, :512] & alive[:, 512:]).double().mean())
    print("p", p, "share alive", float(alive.double().mean()), "both of a pair", both, "expected", (1 - p) ** 2)
    worst = max(worst, abs(both - (1 - p) ** 2) / (1 - p) ** 2)
print("WRONG" if worst > 0.05 else "right", "error", worst, "of the expected share of pairs")
sys.exit(0 if worst > 0.05 else 1)
