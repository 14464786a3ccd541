"""Shapes, dtypes, spreads, masked classes, views."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_shift_with_fallback_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


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

cases = []
for n, c in ((1, 1), (7, 13), (1, 1000), (3, 2049), (9, 65), (5, 1), (9, 2)):
    t = torch.randint(0, c, (n,))
    for scale in (1e-3, 1.0, 1e4):
        x = scale * torch.randn(n, c)
        cases += [(x, t), (x.half().clamp(-6e4, 6e4), t), (x.bfloat16(), t)] if n < 40 else [(x, t)]
    x = torch.randn(n, c)
    x[torch.rand(n, c) < 0.3] = -float("inf")
    cases += [(x, t), (x + 1e5, t), (x.t().contiguous().t(), t), (x[:, :1].expand(n, c), t.repeat_interleave(2)[::2])]
# every loss is tiny: the target is the maximum
x = torch.randn(9, 50)
t = torch.randint(0, 50, (9,))
cases += [(x.scatter(1, t[:, None], 12.0), t), (x.scatter(1, t[:, None], -59.0), t), (x.scatter(1, t[:, None], -61.0), t)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
