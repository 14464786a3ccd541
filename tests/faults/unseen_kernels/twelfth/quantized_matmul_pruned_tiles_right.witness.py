"""Shapes, views, dtypes, pruned weights and -128."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_pruned_tiles_right.py"))
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
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (33, 64, 128), (3, 31, 1025)):
    x, scale = torch.randn(m, k), (torch.rand(n) + 0.5) / 127
    weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    pruned = weight.clone()
    pruned[: n // 2 + 1] = 0
    least = torch.where(torch.rand(n, k) < 0.3, -128, 0).to(torch.int8)
    least[0, 0] = -128
    cases += [(x, weight, scale), (x, least, scale), (x.half(), weight, scale.half())]
    if n > 1:
        cases += [(x, pruned, scale), (x.t().contiguous().t(), weight.t().contiguous().t(), scale[:1].expand(n))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
