"""Shapes, dtypes, and later keys with scores far above those of the first tile."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_first_tile_maximum_right.py"))
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

def growing(seq, above, dtype):
    """Keys that resemble the queries: a score of each row on the diagonal is about above."""
    q, k, v = (torch.randn(1, 2, seq, 64) for _ in range(3))
    k[:, :, 32:] = q[:, :, 32:] * above / 8
    return q.to(dtype), k.to(dtype), v.to(dtype)


cases = [growing(96, above, dtype) for above in (4.0, 8.0, 12.0, 20.0, 60.0) for dtype in (torch.float32, torch.float16, torch.bfloat16)]
for shape in ((1, 1, 1, 64), (1, 1, 127, 64), (2, 3, 35, 32), (1, 1, 65, 128), (1, 2, 33, 80), (1, 1, 130, 16)):
    q, k, v = (torch.randn(shape) for _ in range(3))
    cases += [(q, k, v), (q.half(), k.half(), v.half()), (5 * q, 5 * k, v), (q, -q, v), (q, k.transpose(2, 3).contiguous().transpose(2, 3), v)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    limits = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
    limit = max(limits.get(x.dtype, 1e-5) for x in inputs if torch.is_tensor(x))
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / limit)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
