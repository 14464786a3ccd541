"""Shapes, views, dtypes, NaN of both signs; x must be the same after the call."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_into_own_copy_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return relu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (127, 129), (1000, 1))]
cases += [(torch.randn(64, 33).to(dtype).t(),) for dtype in (torch.float32, torch.float16, torch.bfloat16)]
cases += [(torch.randn(8, 1, 40).expand(8, 3, 40),), (torch.randn(9, 80)[:, 1::2],), (torch.randn(80)[7:],), (torch.randn(3, 9, 8)[:, 2:5],)]
special = torch.tensor([float("nan"), -float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, -1e-40])
cases += [(special,), (special.repeat(5, 2)[:, ::2],), (torch.tensor(-1.0),)]
before = [inputs[0].clone() for inputs in cases]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
for x, inputs in zip(before, cases):
    worst = max(worst, difference(inputs[0], x.double()) * 1e5)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
