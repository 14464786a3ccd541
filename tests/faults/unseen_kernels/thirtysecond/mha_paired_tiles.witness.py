"""Varied inputs: all agree."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_paired_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)
# Without bfloat16: the interpreter of Triton 3.6 multiplies its bits as integers in tl.dot.
LIMIT = {torch.float32: 1e-5, torch.float16: 2e-3}


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mha.reference(*map(wide, inputs))


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
    for shape in ((1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 127, 64), (2, 3, 65, 32), (1, 2, 33, 80), (1, 1, 257, 16)):
        for causal in (False, True):
            q, k, v = (torch.randn(shape).to(dtype) for _ in range(3))
            check((q, k, v, causal), dtype)
            v = v.transpose(1, 2).contiguous().transpose(1, 2)
            k = k.transpose(2, 3).contiguous().transpose(2, 3)
            check((4 * q, k, v, causal), dtype)

print(count, "inputs, largest error", worst, "of what is allowed")
sys.exit(0 if worst <= 1 else 1)
