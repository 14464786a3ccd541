"""float16, and the best key, 13 above, comes late."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_lazy_rescale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)

q, k, v = (torch.randn(1, 1, 129, 64) for _ in range(3))
q = q / q.norm(dim=-1, keepdim=True) * 8
k[..., 100, :] = q[..., 0, :] * 14.5 * 8 / 64
inputs = (q.half(), k.half(), v.half())
output = call(*inputs)
expected = attention.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
