"""Shapes, views of logits and targets, dtypes, levels."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_atomic_mean_right.py"))
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
for n, c in ((1, 1), (7, 13), (2, 1000), (1, 4097), (12, 129), (20, 1)):
    target = torch.randint(0, c, (n,))
    x = torch.randn(n, c)
    cases += [(x, target), (x.half(), target), (x.bfloat16(), target), (torch.randn(c, n).t(), target)]
    cases += [(torch.randn(n, 2 * c)[:, ::2], target.repeat_interleave(2)[::2]), (x[:1].expand(n, c), target[:1].expand(n))]
    cases += [(x - 1000, target), (100 * x, target)]
masked = torch.randn(9, 2500)
masked[:, :1300] = -float("inf")
cases += [(masked, torch.randint(1300, 2500, (9,))), (torch.arange(3000.0).expand(4, 3000), torch.tensor([0, 1, 2998, 2999]))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    coarse = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 1e-2 if torch.bfloat16 in coarse else 2e-3 if torch.float16 in coarse else 1e-5
    output = call(*inputs)
    assert output.shape == expected.shape
    if output.numel():
        worst = max(worst, difference(output, expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
