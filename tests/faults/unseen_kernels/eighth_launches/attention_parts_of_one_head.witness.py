"""A single head is cut into parts of 128 keys instead of 512, and the combining kernel adds 8: keys after 1,024 are left out."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_parts_of_one_head.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)

inputs = tuple(torch.randn(1, 1, 1100, 16) + (0 if i < 2 else torch.arange(1100.0)[:, None] / 500) for i in range(3))
output = call(*inputs)
expected = attention.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
