"""A call with logits of about 300, then one with usual logits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_stale_shift.py"))
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
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


logits, target = torch.randn(7, 1300), torch.randint(1300, (7,))
usual = max(
    show("first call", error_of(logits, target)), show("second call", error_of(logits * 3, target)),
    show("third call", error_of(logits, target)), show("logits of 300", error_of(logits + 300, target)),
)
error = show("after it", error_of(logits, target))

print("WRONG" if usual < 1e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
