"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_split_k_divides_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)

half = torch.float16
shapes = ((1, 1, 1), (7, 5, 13), (64, 128, 96), (33, 257, 70), (40, 100, 600), (40, 100, 520), (3, 31, 1025), (10, 20, 268),
          (65, 127, 256), (32, 64, 2000), (1, 1, 4096))
cases = [(torch.randn(m, k), torch.randn(k, n)) for m, n, k in shapes]
cases += [(a.to(half), b.to(half)) for a, b in cases[2:7]]
cases += [(torch.randn(600, 40).T, torch.randn(90, 600).T), (torch.randn(40, 1200)[:, ::2], torch.randn(600, 100)[:, ::2]),
          (1e4 * torch.randn(9, 520), torch.randn(520, 9)), (1e-6 * torch.randn(9, 520), torch.randn(520, 9))]
wrong = 0
for inputs in cases:
    output = call(*inputs)
    expected = matmul.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
