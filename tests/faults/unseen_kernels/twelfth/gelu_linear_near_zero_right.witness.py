"""Shapes, views, dtypes and scales."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_linear_near_zero_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (64, 128), (33, 257), (100, 1))]
for scale in (1e-30, 1e-6, 1e-4, 1e-3, 0.0024, 0.003, 0.005, 0.01, 0.1, 10.0, 1e4):
    cases += [(scale * torch.randn(33, 257),)]
    if scale > 1e-4:
        cases += [((scale * torch.randn(64, 128)).half().clamp(-6e4, 6e4),)]
cases += [(torch.full((40, 50), 0.00999),), (torch.full((40, 50), -0.00999),), (torch.randn(64, 33).t(),)]
cases += [(torch.randn(8, 1, 40).expand(8, 3, 40),), (torch.zeros(33, 3),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
