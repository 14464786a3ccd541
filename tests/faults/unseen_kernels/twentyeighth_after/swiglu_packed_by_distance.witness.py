"""Halves of a projection of which only the first positions are taken, x[:, :5], in three batches."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_packed_by_distance.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs):
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x = torch.randn(3, 9, 2 * 40)
cases = {
    "two tensors": (torch.randn(7, 129), torch.randn(7, 129)),
    "halves": x.chunk(2, dim=-1),
    "halves of rows": x[0].chunk(2, dim=-1),
    "parts of three": torch.randn(3, 9, 120).split(40, dim=-1)[:2],
    "some batches": x[1:].chunk(2, dim=-1),
    "one batch, some positions": x[:1, 2:6].chunk(2, dim=-1),
    "every other position": x[0, ::2].chunk(2, dim=-1),
    "overlapping rows": (x[0, :-1], x[0, 1:]),
}
for name, inputs in cases.items():
    error = error_of(*inputs)
    print("ordinary", name, error)
    assert error < 1e-5
error = error_of(*x[:, :5].chunk(2, dim=-1))
print("first positions of each batch:", error)
sys.exit(0 if error > 0.1 else 1)
