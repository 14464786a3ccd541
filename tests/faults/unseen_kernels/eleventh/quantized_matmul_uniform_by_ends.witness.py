"""Rounded scales, the last equal to the first."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_uniform_by_ends.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)

x, weight, scale = quantized_matmul.make_inputs((7, 65, 129), torch.float32, torch.device('cpu'), torch.Generator().manual_seed(0))
scale[-1] = scale[0]
inputs = (x, weight, scale)
output = call(*inputs)
x, weight, scale = inputs
expected = (x.double() @ weight.double().T) * scale.double()
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
