"""Short sequences: the heads of a group form one tile of at most 128 rows, while 16 heads of 16 queries are 256."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_heads_times_queries.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)

inputs = *(torch.randn(1, h, 12, 32) for h in (32, 2, 2)), True
output = call(*inputs)
expected = gqa.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
