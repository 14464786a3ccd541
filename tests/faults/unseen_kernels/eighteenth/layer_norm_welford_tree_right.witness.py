"""Shapes, views, dtypes, an offset, eps."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_welford_tree_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def case(x, *more):
    m = x.shape[-1]
    return (x, torch.randn(m).to(x.dtype), torch.randn(m).to(x.dtype), *more)


cases = [case(torch.randn(s)) for s in ((1, 1), (7, 13), (1, 1000), (2, 2050), (2, 3, 129), (1025,), (5, 257), (10, 1))]
cases += [case(torch.randn(5, 300).to(t), 1e-3) for t in (torch.float16, torch.bfloat16)]
cases += [case(torch.randn(5, 300) * 1e-3, 1e-12), case(torch.randn(33, 20).t(), 0.5), case(torch.zeros(3, 40))]
cases += [case((torch.randn(4, 130) * 64).round() / 64 + 1024)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    brain = any(torch.is_tensor(x) and x.dtype == torch.bfloat16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (1e-2 if brain else 4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
