"""1000 rows of logits of about 10,000: their losses add up to more than 2^23."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_fixed_point.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


target = torch.randint(32, (1000,))
logits = torch.randn(1000, 32)
ordinary = max(
    error_of(logits, target),
    error_of(logits * 100, target),
    error_of(torch.randn(3, 5000), torch.tensor([0, 4999, 17])),
)
error = error_of(logits * 1e4, target)

print("ordinary", ordinary, "of the largest value")
print("WRONG" if error > 0.01 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.01 and ordinary < 1e-05 else 1)
