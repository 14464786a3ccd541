"""x + x.T of a square matrix, and x + its first row."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_same_address.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


x = torch.randn(40, 40)
ordinary = max(
    error_of(a.to(dtype), b.to(dtype), alpha)
    for a, b in ((torch.randn(7, 13), torch.randn(7, 13)), (x, x), (x, x.t().contiguous()), (x, torch.randn(40, 40).t()))
    for dtype in (torch.float32, torch.float16) for alpha in (1.0, -2.0, 0.1)
)
ordinary = max(ordinary, error_of(x, x, 0.5), error_of(x.t(), x.t(), 0.5))
print("x + its first row:", error_of(x, x[:1].expand(40, 40), 1.0))
error = error_of(x, x.t(), 1.0)
print("an ordinary input:", ordinary)
shows = ordinary < 0.002 and error > 0.02
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
