"""Varied inputs: all agree."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_by_dot.py"))
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


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)

worst = 0.0
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((1, 1), (7, 13), (3, 1500), (2, 3, 129), (1025,), (19, 1), (2, 2, 3, 5)):
        for scale, shift in ((1, 0), (20, 8)):
            x = (torch.randn(shape) * scale + shift).to(dtype)
            for x in (x, x.mT if x.dim() > 1 and x.shape[-1] < 200 else x[..., ::2], torch.cat((x, x), -1)[..., : x.shape[-1]]):
                error = float(((call(x).double() - expect((x,))).abs() / (1e-6 * x.double().abs().sum(-1) + torch.finfo(dtype).eps * expect((x,)).abs() + 1e-6)).max())
                worst = max(worst, error / 1.0)
x = torch.randn(9, 1500)
x[0, 3], x[1, 700], x[2, 5], x[3], x[4, :600], x[5, 9] = (
    float("nan"), float("inf"), -float("inf"), -float("inf"), -float("inf"), -float("nan")
)
x[4, 600:] -= 300
error = error_of(x)
print("worst", worst, "of what is allowed", "special values", error)
sys.exit(0 if worst < 1 and error < 1e-5 else 1)
