"""The same shape with two bases of the angles."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_tables_by_shape.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)

def tables(base):
    angles = torch.arange(64.0)[:, None] * base ** -(torch.arange(16.0) / 16)
    return angles.cos(), angles.sin()


x = torch.randn(1, 2, 64, 32)
call(x, *tables(10_000.0))
inputs = (x, *tables(500_000.0))
output = call(*inputs)
expected = rope.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
