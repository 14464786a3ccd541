"""Varied inputs: all agree, also with other strides and aliases."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_in_memory_order.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


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
                error = max(error_of(x, y, alpha) for alpha in (1.0, -2, 0.1) for y in (torch.randn(x.shape).to(dtype), torch.randn_like(x), x, x.flip(-1)))
                worst = max(worst, error / (2 * torch.finfo(dtype).eps + 1e-6))
x = torch.randn(9, 1500)
x[0, 3], x[1, 700], x[2, 5], x[3], x[4, :600], x[5, 9] = (
    float("nan"), float("inf"), -float("inf"), -float("inf"), -float("inf"), -float("nan")
)
x[4, 600:] -= 300
error = max(error_of(x, x, 1.0), error_of(x, torch.ones_like(x), 0.0), error_of(torch.ones_like(x), x, 0.0), error_of(x[:, :9], x[:, :9].t(), 1.0))
print("worst", worst, "of what is allowed", "special values", error)
sys.exit(0 if worst < 1 and error < 1e-5 else 1)
