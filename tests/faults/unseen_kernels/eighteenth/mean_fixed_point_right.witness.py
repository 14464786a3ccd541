"""Shapes, views, dtypes, scales, an outlier, NaN and infinity."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_fixed_point_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (33, 257), (100, 1))]
for scale in (1e-36, 1e-30, 1e-6, 1.0, 1e6, 1e35):
    cases += [(scale * torch.rand(7, 1500),)]
cases += [(torch.rand(7, 1025).half(),), (torch.rand(7, 1025).bfloat16(),), (torch.full((3, 4097), 60000.0).half(),)]
x = torch.rand(4, 2000)
x[0, 1500], x[1, 7], x[2, 1999] = 1e9, float("nan"), float("inf")
cases += [(x,), (torch.randn(33, 64).t(),), (torch.rand(8, 1, 40).expand(8, 3, 40),), (torch.zeros(3, 5),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    brain = any(torch.is_tensor(x) and x.dtype == torch.bfloat16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (1e-2 if brain else 4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
