"""The first row of a is 1e10 times the others; the error of each row, of the largest of that row."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_limbs_one_scale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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


def by_row(a, b):
    output, expected = call(a, b).double(), expect((a, b))
    return float(((output - expected).abs().amax(1) / expected.abs().amax(1)).max())


a, b = torch.randn(65, 300), torch.randn(300, 70)
ordinary = max(by_row(a, b), error_of(a.bfloat16(), b.bfloat16()) / 1000, error_of(a.half(), b.half()) / 1000)
a[0] *= 1e10
error = by_row(a, b)

print("ordinary", ordinary, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and ordinary < 1e-05 else 1)
