"""From 2**20 elements on the block is 4,096, but whether the last one is whole is decided for 1,024."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_even_by_the_small_block.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)

inputs = torch.randn(1025, 1024), torch.randn(1025, 1024)
output = call(*inputs)
expected = swiglu.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
