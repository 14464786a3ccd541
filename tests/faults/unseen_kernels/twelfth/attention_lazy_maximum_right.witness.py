"""Shapes, dtypes and scores that grow along the keys."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_lazy_maximum_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 127, 32), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80)):
    q, k, v = torch.randn(3, *shape)
    cases += [(q, k, v), (q.half(), k.half(), v.half())]
for step in (0.5, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0):
    q = torch.ones(1, 1, 128, 16, dtype=torch.float16)
    k = 0.1 * torch.randn(1, 1, 128, 16) + step * (torch.arange(128)[:, None] // 40)
    v = torch.randn(1, 1, 128, 16).half()
    cases += [(q, k.half(), v), (q.half(), (-k).half(), v)]
q, k, v = torch.randn(2, 40, 3, 3, 16).transpose(1, 3).unbind(2)
cases += [(q, k, v)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
