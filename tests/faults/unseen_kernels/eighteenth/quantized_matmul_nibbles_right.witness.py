"""Shapes, views, dtypes, the extreme weights."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_nibbles_right.py"))
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

cases = []
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (65, 127, 129), (3, 31, 1025)):
    for t in (torch.float32, torch.float16, torch.bfloat16):
        weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
        cases += [((torch.randn(m, k) / k**0.5).to(t), weight, (torch.rand(n) / 64).to(t))]
cases += [(torch.rand(5, 40), torch.full((20, 40), w, dtype=torch.int8), torch.rand(20)) for w in (-128, -1, 0, 127)]
weight = torch.randint(-128, 128, (65, 33), dtype=torch.int8)
cases += [(torch.randn(65, 7).t(), weight.t(), torch.rand(66)[::2]), (torch.randn(1, 65).expand(7, 65), weight.t(), torch.rand(1).expand(33))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    brain = any(torch.is_tensor(x) and x.dtype == torch.bfloat16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (1e-2 if brain else 4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
