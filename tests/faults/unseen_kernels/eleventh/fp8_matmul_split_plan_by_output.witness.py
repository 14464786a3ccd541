"""The same m and n with k of 64, then of 1024."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_split_plan_by_output.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)

make = lambda k: fp8_matmul.make_inputs((16, 33, k), torch.float16, torch.device('cpu'), torch.Generator().manual_seed(k))
call(*make(64))
inputs = make(1024)
output = call(*inputs)
a, b, sa, sb = inputs
expected = (a.double() @ b.double().T) * sa.double()[:, None] * sb.double()
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
