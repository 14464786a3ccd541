"""Shapes, dtypes, views, scales, infinities and NaN in some rows."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_by_product_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (100, 1)):
    x = torch.rand(shape) + 0.1
    cases += [(x,), (x.half(),), (x.bfloat16(),), (1e30 * x,), (1e-30 * x,), (torch.randn(shape),)]
x = torch.rand(20, 100)
x[3, 5], x[4, 99], x[5, 0] = float("inf"), float("nan"), -float("inf")
cases += [(x,), (x.half(),), (torch.rand(64, 33).t(),), (torch.rand(8, 1, 40).expand(8, 3, 40),), (torch.rand(9, 64)[:, ::3],)]

allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    for _ in range(2):
        output = call(*inputs)
        assert output.shape == expected.shape and output.dtype == inputs[0].dtype
        worst = max(worst, difference(output, expected) / allowed[output.dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
