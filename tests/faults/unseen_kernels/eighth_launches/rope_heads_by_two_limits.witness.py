"""The grid counts groups of 32 heads; with half over 64 a program takes only 16 or fewer of them."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_heads_by_two_limits.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)

x = torch.randn(1, 20, 6, 256)
angles = torch.arange(6.0)[:, None] * 10_000.0 ** -(torch.arange(128.0) / 128)
inputs = x, angles.cos(), angles.sin()
output = call(*inputs)
expected = rope.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
