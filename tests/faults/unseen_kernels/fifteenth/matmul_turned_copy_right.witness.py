"""Shapes, views, dtypes, k of 0, and inverse sizes along k."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_turned_copy_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (65, 70, 129), (3, 31, 1025)):
    a, b = torch.randn(m, k), torch.randn(k, n)
    cases += [(a, b), (a.half(), b.half()), (a.bfloat16(), b.bfloat16()), (torch.randn(k, m).t(), torch.randn(n, k).t())]
    cases += [(torch.randn(m, 2 * k)[:, ::2], b[:, :1].expand(k, n)), (a[:1].expand(m, k), torch.randn(k, 3 * n)[:, n : 2 * n])]
sizes = 10 ** torch.linspace(-7, 7, 64)
cases += [(torch.randn(4, 0), torch.randn(0, 5)), (torch.randn(20, 64) * sizes, torch.randn(64, 20) / sizes[:, None])]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    coarse = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 1e-2 if torch.bfloat16 in coarse else 2e-3 if torch.float16 in coarse else 1e-5
    output = call(*inputs)
    assert output.shape == expected.shape
    if output.numel():
        worst = max(worst, difference(output, expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
