"""y is a column of a matrix: afterwards it holds the sum, and a second call adds x again."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_donated_copy.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = difference(call(*(usual := (torch.randn(9, 300), torch.randn(9, 300), 0.1))), expect(usual))
turned = torch.randn(50, 30).t(), torch.randn(50, 30).t(), -2.0
saved = turned[1].clone()
usual = max(usual, difference(call(*turned), expect(turned)), float((saved - turned[1]).abs().max()))
x, y = torch.randn(200, 1), torch.randn(200, 4)[:, 1:2]
before = y.clone()
expected = expect((x, y, 0.5))
print("first call", difference(call(x, y, 0.5), expected))
print("y has changed by", (y - before).abs().max().item())
error = difference(call(x, y, 0.5), expected)

print("ordinary error", usual, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and usual < 1e-5 else 1)
