"""Shapes, dtypes and layouts; k = 0 too."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_overlapping_tiles.py"))
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


shapes = [
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (3, 31, 1025),
    (100, 131, 101), (32, 64, 32), (170, 70, 96), (5, 4, 0),
]
worst = 0.0
for dtype, limit in ((torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
    for m, n, k in shapes:
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        cases = [(a, b), (torch.randn(k, m).to(dtype).t(), torch.randn(n, k).to(dtype).t())]
        cases += [(torch.randn(m, 2 * k).to(dtype)[:, ::2], b.flip(0))]
        worst = max([worst] + [error_of(*case) / limit for case in cases])
square = torch.randn(50, 50)
worst = max(worst, error_of(square, square) / 1e-5, error_of(square, square.t()) / 1e-5)

print("right" if worst <= 1 else "WRONG", "worst error", worst, "of its limit")
sys.exit(0 if worst <= 1 else 1)
