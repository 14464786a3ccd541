"""Varied inputs: all agree."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_last_adds.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)
LIMIT = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return cross_entropy.reference(*map(wide, inputs))


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
    for rows, classes in ((1, 1), (7, 13), (1, 1000), (3, 4097), (127, 129), (20, 1023), (70, 1)):
        for scale in (1.0, 100.0):
            logits = (torch.randn(rows, classes) * scale).to(dtype)
            target = torch.randint(classes, (rows,))
            check((logits, target), dtype)
    check((torch.randn(50, 33).to(dtype).T, torch.randint(50, (33, 2))[:, 1]), dtype)
    logits = torch.randn(9, 2500).to(dtype)
    logits[2, :1100] = -float("inf")
    logits[3, 2400:] = -float("inf")
    check((logits, torch.full((9,), 1200)), dtype)
    logits[4, 7] = float("nan")
    check((logits, torch.full((9,), 1200)), dtype)

print(count, "inputs, largest error", worst, "of what is allowed")
sys.exit(0 if worst <= 1 else 1)
