"""A wide output: three by seven tiles."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_groups_of_columns.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)

inputs = fp8_matmul.make_inputs((40, 420, 96), torch.float16, torch.device("cpu"), torch.Generator().manual_seed(0))
output = call(*inputs)
expected = fp8_matmul.reference(*(x.double() if torch.is_tensor(x) and x.dtype == torch.float16 else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
