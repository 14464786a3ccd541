"""One head of keys with all kinds of lengths, and others; causal or not; views."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_single_key_head_rows_right.py"))
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
    (1, 4, 1, 96, 16), (2, 3, 1, 32, 24), (1, 3, 1, 160, 16), (2, 2, 1, 64, 16), (1, 5, 1, 33, 16), (1, 1, 1, 1, 64),
    (1, 6, 2, 96, 16), (2, 6, 3, 65, 40), (1, 2, 2, 7, 80), (1, 8, 1, 31, 128),
):
    q, k, v = (torch.randn(batch, n, seq, dim) for n in (heads, kv, kv))
    cases += [(q, k, v, True), (q, k, v), (q.half(), k.half(), v.half(), True)]
    cases += [(q.bfloat16(), k.bfloat16(), v.bfloat16(), True)]
    cases += [(q.transpose(1, 2).contiguous().transpose(1, 2), k[:, :, :1].expand_as(k), v.flip(2), True)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
