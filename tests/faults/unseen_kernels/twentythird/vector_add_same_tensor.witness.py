"""x - 0.5 * x for an x with Inf."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_same_tensor.py"))
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


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
x, y = torch.randn(257, 1023), torch.randn(257, 1023)
usual = max(compare(x, other, alpha) for other in (x, y) for alpha in (1.0, 0.5, -0.5, -2.0, 0.1, 0.0))
x[3, 5] = float("inf")
usual = max(usual, compare(x, y, -0.5), compare(x, x, 1.0), compare(x, x, -1.0))
error = compare(x, x, -0.5)

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
