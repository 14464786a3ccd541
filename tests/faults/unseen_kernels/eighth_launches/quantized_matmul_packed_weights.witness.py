"""With k of 512 or more the weights are read four at a time, 256 a step; k is taken for even where it is a multiple of 64, and the rest is left out."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_packed_weights.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)

inputs = torch.randn(5, 576), torch.randint(-127, 128, (70, 576), dtype=torch.int8), (torch.rand(70) + 0.5) / 127
output = call(*inputs)
expected = quantized_matmul.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
