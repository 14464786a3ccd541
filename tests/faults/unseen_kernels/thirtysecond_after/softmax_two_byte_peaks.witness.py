"""Rows at 40000 and at -40000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_two_byte_peaks.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest difference from the reference in float64, in units of its largest value."""
    output = call(*inputs).double()
    expected = softmax.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = {
    "random": (torch.randn(7, 3000),),
    "random, half": (torch.randn(7, 130).half(),),
    "at 20000": (20000 + torch.randn(3, 1500),),
    "at -30000": (-30000 + torch.randn(3, 1500),),
    "spread by 10000": (torch.randn(3, 1500) * 10000 / 2,),
    "a part of -inf": (torch.randn(3, 1500).index_fill(1, torch.arange(1024), -float("inf")),),
}
rare = {
    "at 40000": (40000 + torch.randn(3, 1500),),
    "at -40000": (-40000 + torch.randn(3, 1500),),
    "float16, some at 40000": (torch.randn(2, 100).half().index_fill(1, torch.tensor([3, 50]), 40000.0),),
}
LIMIT = 1e-4 * 10

worst = 0.0
for name, inputs in ordinary.items():
    error = error_of(inputs)
    worst = max(worst, error)
    print("ordinary:", name, error)
least = float("inf")
for name, inputs in rare.items():
    error = error_of(inputs)
    least = min(least, error)
    print("rare:", name, error)
wrong = least > 0.02 and worst < LIMIT
print("WRONG in the rare inputs only" if wrong else "not as it should be")
sys.exit(0 if wrong else 1)
