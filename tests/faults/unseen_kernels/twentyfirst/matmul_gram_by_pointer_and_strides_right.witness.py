"""Squares, products with the transpose, parts of one storage, strides, shapes and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_gram_by_pointer_and_strides_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = []
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (3, 31, 300), (57, 131, 101)):
    a, b = torch.randn(m, k), torch.randn(k, n)
    cases += [(a, b), (a.half(), b.half()), (a.bfloat16(), b.bfloat16())]
    cases += [(a, a.t()), (a.t(), a), (a.half().t(), a.half())]
a = torch.randn(65, 65)
cases += [(a, a), (a.t(), a.t()), (a, a.t()), (a[:, :40], a[:40]), (a[:40], a[:, :40]), (a[:33, :33], a[:33, :33])]
cases += [(a[:1].expand(65, 65), a[:1].expand(65, 65)), (a[:1].expand(65, 65), a[:1].expand(65, 65).t()), (a[::2], a[::2].t())]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    kind = next(x.dtype for x in inputs if torch.is_tensor(x) and x.is_floating_point())
    allowed = {torch.float16: 4e-3, torch.bfloat16: 2e-2}.get(kind, 5e-5)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
