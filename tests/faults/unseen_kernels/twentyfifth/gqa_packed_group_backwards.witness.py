"""Groups of 1 to 7 heads, odd lengths, both masks, layouts and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_packed_group_backwards.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gqa.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


worst, count = 0.0, 0
for dtype, limit in ((torch.float32, 1e-5), (torch.float16, 4e-3)):  # the interpreter has no dot of bfloat16
    for batch, heads, kv, seq, dim in ((1, 1, 1, 1, 64), (1, 2, 1, 7, 64), (1, 6, 2, 60, 64), (2, 6, 3, 65, 96), (1, 7, 1, 33, 80), (3, 4, 4, 70, 16), (1, 3, 1, 17, 160)):
        for causal in (False, True):
            q = torch.randn(batch, heads, seq, dim).to(dtype)
            k, v = (torch.randn(batch, kv, seq, dim).to(dtype) for _ in range(2))
            if seq == 65:
                k = k.transpose(1, 2).contiguous().transpose(1, 2)
            worst, count = max(worst, error_of(q, k, v, causal) / limit), count + 1
    q, k, v = (4 * torch.randn(1, n, 50, 32) for n in (4, 2, 2))
    worst = max(worst, error_of(q.to(dtype), k.to(dtype), v.to(dtype), True) / limit)
print("right" if worst <= 1 else "WRONG", count, "inputs, the largest error", worst, "of its limit")
sys.exit(0 if worst <= 1 else 1)
