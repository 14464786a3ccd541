"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_causal_tiles_in_pairs_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)

half = torch.float16
shapes = ((1, 1, 1, 64), (1, 1, 7, 64), (2, 4, 90, 32), (2, 4, 70, 16), (1, 2, 33, 80), (1, 8, 64, 32), (1, 6, 129, 16), (3, 4, 40, 24))
cases = [(*(torch.randn(s) for _ in range(3)), causal) for s in shapes for causal in (True, False)]
cases += [(*(torch.randn(2, 4, 90, 32).to(half) for _ in range(3)), True)]
cases += [(*(torch.randn(2, 90, 4, 32).transpose(1, 2) for _ in range(3)), True)]
cases += [(*(5 * torch.randn(2, 4, 90, 32) for _ in range(3)), True), (*(torch.zeros(2, 4, 90, 32) for _ in range(3)), True)]
wrong = 0
for inputs in cases:
    output = call(*inputs)
    expected = mha.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
