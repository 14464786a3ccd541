"""Shapes, dtypes, layouts, sizes of the logits, infinities; each twice."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_ticket.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


shapes = [(1, 1), (7, 13), (1, 1000), (3, 4097), (27, 29), (300, 2)]
worst = 0.0
for dtype, limit in ((torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
    for rows, classes in shapes:
        logits, target = torch.randn(rows, classes).to(dtype), torch.randint(classes, (rows,))
        infinite = logits.clone()
        infinite[0, 0] = float("inf")
        cases = [(logits, target), (logits, target), (logits * 1000, target)]
        if rows < 100:
            cases += [
                (torch.randn(classes, rows).to(dtype).t(), target), (infinite, target),
                (logits, torch.randint(classes, (rows, 2))[:, 1]), (logits + 500, target),
                (logits[:, :1].expand(rows, classes), target),
            ]
        worst = max([worst] + [error_of(*case) / limit for case in cases])
masked = torch.randn(5, 10000)
masked[:, :5000] = -float("inf")
worst = max(worst, error_of(masked, torch.full((5,), 7000)) / 1e-5)

print("right" if worst <= 1 else "WRONG", "worst error", worst, "of its limit")
sys.exit(0 if worst <= 1 else 1)
