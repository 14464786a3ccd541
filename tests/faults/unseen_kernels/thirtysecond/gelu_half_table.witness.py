"""Varied inputs: all agree."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_half_table.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)
LIMIT = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


worst, count = 0.0, 0


def check(inputs, dtype):
    """Keep the largest error, as a part of what the dtype allows."""
    global worst, count
    error = difference(call(*inputs), expect(inputs)) / LIMIT[dtype]
    worst, count = max(worst, error), count + 1


for dtype in LIMIT:
    for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (257, 1023), (1000, 1)):
        for scale in (1.0, 1e-2, 30.0):
            x = (torch.randn(shape) * scale).to(dtype)
            check((x,), dtype)
            check((x.T if x.dim() == 2 else x[..., ::2],), dtype)
    special = torch.tensor([float("nan"), float("inf"), 0.0, -0.0, torch.finfo(dtype).max, -torch.finfo(dtype).max])
    check((special.to(dtype),), dtype)

print(count, "inputs, largest error", worst, "of what is allowed")
sys.exit(0 if worst <= 1 else 1)
