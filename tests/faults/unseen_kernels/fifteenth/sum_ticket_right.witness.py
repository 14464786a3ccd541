"""Shapes, views, dtypes, levels, special values and empty tensors."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_ticket_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def views(*shape):
    x = torch.randn(*shape)
    yield x
    yield x.half()
    yield x.bfloat16()
    yield torch.randn(*shape[:-1], 2 * shape[-1])[..., ::2]
    yield torch.randn(shape[-1], *shape[:-1]).movedim(0, -1)
    yield x[:1].expand(*shape)


cases = []
for shape in ((1, 1), (7, 13), (2, 1030), (2, 3, 65), (130,)):
    cases += [(x,) for x in views(*shape)]
cases += [(torch.randn(1, 4097),), (torch.randn(40, 1),)]
cases += [(1e4 + torch.randn(5, 300),), (1e-20 * torch.randn(5, 300),), (-100 + torch.randn(5, 1500),)]
cases += [(torch.randn(0, 5),), (torch.randn(3, 0, 5),)]
special = torch.randn(6, 1300)
special[0, 3], special[1, 1200], special[2, 5], special[3, :1100] = float("nan"), float("inf"), -float("inf"), -float("inf")
special[4, 7], special[4, 9] = float("inf"), -float("inf")
cases += [(special,)]

cases += [(torch.rand(2, 40000),), (torch.rand(4, 0),), (torch.rand(4, 5000),), (torch.rand(4, 3000),)]

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
