"""Logits far apart, infinite, NaN, and shapes and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_tiles_far_below_right.py"))
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


inf, nan = float("inf"), float("nan")
cases = []
for value in (12.0, 90.0, 103.0, 104.5, 200.0, 1e30, inf, nan):
    x = 0.1 * torch.randn(2, 5000)
    x[:, 0] = value
    cases += [(x,), (x.flip(1),)]
for low in (-103.0, -104.0, -105.0, -1e30, -inf):
    x = torch.randn(3, 3000)
    x[:, :1100] = low
    cases += [(x,), (x.flip(1),), (torch.full((2, 2050), low),)]
x = torch.full((2, 3000), -300.0)
x[:, 0], x[:, 2000] = 0.0, nan
cases += [(x,), (torch.randn(2050, 3).t(),), (torch.randn(3, 1).expand(3, 7),)]
for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (50, 1)):
    x = torch.randn(shape)
    cases += [(x,), ((100 * x).half(),), (x.bfloat16(),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
