"""Shapes, views, dtypes, weights of -128, and a scale that changes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_table_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return quantized_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def expect(inputs):
    return inputs[0].double() @ inputs[1].double().T * inputs[2].double()


cases = []
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (20, 127, 129), (3, 31, 1025)):
    x, w, s = torch.randn(m, k), torch.randint(-128, 128, (n, k), dtype=torch.int8), torch.rand(n) / 100
    cases += [(x, w, s), (x.half(), w, s.half()), (x.bfloat16(), w, s.bfloat16())]
    cases += [(torch.randn(k, m).t(), w.t().contiguous().t(), s), (x[:1].expand(m, k), w[:1].expand(n, k), s[:1].expand(n))]
    cases += [(x, torch.full((n, 2 * k), -128, dtype=torch.int8)[:, ::2], torch.rand(2 * n)[::2]), (x, w, 3 * s)]

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
