"""Shapes that follow one another, larger and smaller K, strided factors."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_split_workspace_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
generator = torch.Generator().manual_seed(0)
for shape in (
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (33, 64, 272), (33, 64, 65), (33, 64, 128),
    (33, 64, 129), (33, 64, 600), (33, 64, 3), (3, 31, 1025), (3, 31, 10), (65, 127, 129), (65, 127, 100), (31, 3, 257),
):
    a, b, sa, sb = fp8_matmul.make_inputs(shape, torch.float16, torch.device("cpu"), generator)
    cases += [(a, b, sa, sb)]
cases += [(a.t().contiguous().t(), b.t().contiguous().t(), sa, sb), (a[:, ::2], b[:, ::2], sa, sb)]
cases += [(a[:1].expand_as(a), b, sa[:1].expand_as(sa), sb)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
