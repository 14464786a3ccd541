"""Rows of a of very different sizes; each row is compared by its own size."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_limbs_with_one_scale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)

a = torch.randn(32, 64)
a[16:] *= 1e-7
inputs = (a, torch.randn(64, 32))
output = call(*inputs)
expected = matmul.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = ((output.double() - expected) / expected.abs().amax(1, keepdim=True)).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = 1.0
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
