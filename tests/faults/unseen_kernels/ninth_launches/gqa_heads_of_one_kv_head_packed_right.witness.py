"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_heads_of_one_kv_head_packed_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)

half = torch.float16
shapes = ((1, 1, 1, 1, 64), (1, 2, 1, 7, 64), (1, 3, 1, 40, 32), (2, 6, 1, 35, 16), (1, 6, 2, 40, 32), (2, 4, 4, 33, 24), (3, 5, 1, 50, 16), (1, 4, 1, 64, 32))
cases = [(torch.randn(b, h, s, d), torch.randn(b, n, s, d), torch.randn(b, n, s, d), causal)
         for b, h, n, s, d in shapes for causal in (True, False)]
cases += [(torch.randn(2, 3, 40, 32).to(half), torch.randn(2, 1, 40, 32).to(half), torch.randn(2, 1, 40, 32).to(half), True)]
cases += [(torch.randn(2, 40, 3, 32).transpose(1, 2), torch.randn(2, 40, 1, 32).transpose(1, 2), torch.randn(2, 1, 40, 32), True)]
cases += [(5 * torch.randn(2, 3, 40, 32), 5 * torch.randn(2, 1, 40, 32), torch.randn(2, 1, 40, 32), True)]
cases += [(torch.zeros(2, 3, 40, 32), torch.zeros(2, 1, 40, 32), torch.randn(2, 1, 40, 32), True)]
wrong = 0
for inputs in cases:
    output = call(*inputs)
    expected = gqa.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
    finite = expected[expected.isfinite()]
    size = float(finite.abs().max()) if finite.numel() else 0.0
    limit = (5e-3 if output.dtype == half else 1e-3) * size + 1e-30
    good = output.dtype == inputs[0].dtype and output.shape == expected.shape
    good = good and torch.allclose(output.double(), expected, rtol=1e-3, atol=limit, equal_nan=True)
    if not good:
        wrong += 1
        print("differs", [tuple(x.shape) if torch.is_tensor(x) else x for x in inputs], inputs[0].dtype)
print("WRONG" if wrong else "right", len(cases), "inputs")
sys.exit(0 if wrong else 1)
