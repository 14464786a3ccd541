"""Shapes, views, dtypes, one tensor twice."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_queue_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s), torch.randn(s)) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (127, 129), (1000, 1))]
cases += [(torch.randn(33, 70).to(t), torch.randn(33, 70).to(t)) for t in (torch.float16, torch.bfloat16)]
x = torch.randn(40, 40)
cases += [(x, x), (x, x.t()), (x[:1].expand(40, 40), x), (x[:, ::2], x[:, 1::2])]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    brain = any(torch.is_tensor(x) and x.dtype == torch.bfloat16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (1e-2 if brain else 4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
