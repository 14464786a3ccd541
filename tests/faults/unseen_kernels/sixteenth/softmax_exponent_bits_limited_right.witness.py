"""Shapes, dtypes, spreads, masked columns, infinite and missing values, views."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_exponent_bits_limited_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1, 1000), (2, 4097), (2, 2, 65), (1025,), (5, 1))]
for scale in (0.0, 1.0, 30.0, 60.0, 1e4, 1e30):
    x = scale * torch.randn(3, 257)
    cases += [(x,), (x.half().clamp(-6e4, 6e4),), (x.bfloat16(),), (x[:, :5].t(),) if scale == 1 else (x[:, ::2],)]
x = torch.randn(9, 257).masked_fill(torch.rand(9, 257) < 0.5, -float("inf"))
cases += [(x,), (x.half(),), (x + 1e5,)]
x = torch.randn(9, 257)
x[0, 3] = x[1, 200] = float("nan")
x[2, 5] = float("inf")
x[3] = -float("inf")
x[4, 1:] = -float("inf")
cases += [(x,), (torch.randn(1, 40).expand(5, 40),), (torch.linspace(-200.0, 0.0, 1025),), (torch.linspace(-90.0, -80.0, 1025),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
