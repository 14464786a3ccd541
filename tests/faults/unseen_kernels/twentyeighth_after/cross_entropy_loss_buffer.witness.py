"""A batch of 120 rows, then one of 70: both have a buffer of 128."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_loss_buffer.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
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


def draw(rows, classes):
    return torch.randn(rows, classes), torch.randint(classes, (rows,))


for shape in ((120, 200), (120, 200), (32, 1500), (7, 13)):
    error = error_of(*draw(*shape))
    print("ordinary", shape, error)
    assert error < 1e-5
error = error_of(*draw(70, 200))
print("70 rows after 120:", error)
sys.exit(0 if error > 0.1 else 1)
