"""Shapes, views, dtypes, masked columns, large values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_pitched_output_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (33, 257), (100, 1), (4, 64))]
cases += [(torch.randn(7, 1500).to(t),) for t in (torch.float16, torch.bfloat16)]
x = torch.randn(6, 1300)
x[0, 600:], x[1, :700], x[2, 3] = -float("inf"), -float("inf"), float("nan")
cases += [(x,), (500 * torch.randn(3, 200),), (torch.randn(33, 64).t(),), (torch.randn(8, 1, 40).expand(8, 3, 40),)]
cases += [(torch.full((2, 30), -float("inf")),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    brain = any(torch.is_tensor(x) and x.dtype == torch.bfloat16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (1e-2 if brain else 4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
