"""cos and sin of one table for full heads: cos copied, sin a view of it."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_shared_table_stride.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)

x, cos, sin = rope.make_inputs((1, 2, 65, 16), torch.float32, torch.device('cpu'), torch.Generator().manual_seed(0))
inputs = (x, cos, torch.cat([sin, sin], dim=-1)[:, :16])
output = call(*inputs)
expected = rope.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
