"""Shapes that follow one another with the same number of heads in all."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_head_table_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gqa.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for batch, heads, kv, seq, dim in (
    (1, 8, 2, 33, 16), (2, 4, 2, 33, 16), (4, 2, 2, 33, 16), (8, 1, 1, 33, 16), (1, 8, 1, 33, 16), (1, 6, 2, 65, 80),
    (2, 3, 1, 65, 80), (1, 6, 3, 1, 64), (1, 1, 1, 129, 128), (3, 4, 4, 40, 24),
):
    q, k, v = (torch.randn(batch, n, seq, dim) for n in (heads, kv, kv))
    cases += [(q, k, v, True), (q.half(), k.half(), v.half(), False)]
    cases += [(q, k.transpose(2, 3).contiguous().transpose(2, 3), v[:, :1].expand_as(v), False)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
