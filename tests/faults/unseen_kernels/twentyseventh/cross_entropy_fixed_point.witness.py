"""A NaN in one row of logits: the mean is NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_fixed_point.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return cross_entropy.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = torch.randn(64, 1000), torch.randint(1000, (64,))
usual = difference(call(*usual), expect(usual))
logits, target = torch.randn(64, 1000), torch.randint(1000, (64,))
logits[5, 7] = float("nan")
output, expected = call(logits, target), expect((logits, target))
print("output", output.item(), "expected", expected.item())
error = difference(output, expected)
infinite = torch.randn(8, 33), torch.randint(32, (8,))
infinite[0][2, infinite[1][2]] = -float("inf")
print("a target at -inf:", call(*infinite).item(), "expected", expect(infinite).item())

print("ordinary error", usual, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and usual < 1e-5 else 1)
