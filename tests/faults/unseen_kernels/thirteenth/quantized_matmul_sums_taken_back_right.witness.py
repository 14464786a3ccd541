"""Calls with infinite and NaN activations between ordinary ones, shapes and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_sums_taken_back_right.py"))
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


weight, scale = torch.randint(-128, 128, (40, 130), dtype=torch.int8), 0.01 * torch.rand(40)
cases = []
for value in (1.0, float("inf"), float("nan"), -float("inf"), 1e36):
    x = torch.randn(5, 130)
    x[2, 7] = value
    cases += [(x, weight, scale), (torch.randn(5, 130), weight, scale)]
cases += [(torch.randn(130, 5).t(), weight.t().contiguous().t(), scale[:1].expand(40))]
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (65, 12, 129), (3, 31, 1025)):
    x, w, s = torch.randn(m, k), torch.randint(-128, 128, (n, k), dtype=torch.int8), 0.01 * torch.rand(n)
    cases += [(x, w, s), (x.half(), w, s.half()), (x.bfloat16(), w, s.bfloat16())]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
