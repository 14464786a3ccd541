"""Shapes, dtypes, views, and groups of up to 71 heads."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_packed_group_end_right.py"))
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
    (1, 48, 1, 9, 16), (1, 71, 1, 13, 16), (2, 33, 1, 17, 16), (1, 96, 2, 5, 32), (1, 1, 1, 1, 64), (1, 2, 1, 7, 64),
    (1, 6, 2, 40, 64), (2, 3, 3, 35, 96), (1, 3, 1, 65, 128), (1, 8, 2, 33, 80), (1, 5, 1, 70, 16),
):
    q, k, v = (torch.randn(batch, n, seq, dim) for n in (heads, kv, kv))
    cases += [(q, k, v, True), (q, k, v, False), (q.half(), k.half(), v.half(), True)]
    cases += [(q.transpose(1, 2).contiguous().transpose(1, 2), k, v[:, :1].expand_as(v), True)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    limits = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
    limit = max(limits.get(x.dtype, 1e-5) for x in inputs if torch.is_tensor(x))
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / limit)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
