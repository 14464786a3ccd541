"""Shapes, dtypes, strides and special values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_table.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def cases():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (0,), (1000, 1)):
            yield torch.randn(shape).to(dtype)
        yield (torch.randn(60, 50) * 4).to(dtype).t()
        yield (torch.randn(60, 50) * 100).to(dtype)[::2, 1::3]
        yield torch.tensor([0.0, -0.0, float("inf"), float("nan"), -50.0, 60000.0]).to(dtype)
        yield (torch.randn(500) * 1e-4).to(dtype)


LIMITS = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
all_inputs = [(x,) for x in cases()]

worst = 0.0
for inputs in all_inputs:
    output, expected = call(*inputs), expect(inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not output.numel():
        continue
    bad = difference(output, expected.to(output.dtype).double()) / LIMITS[output.dtype]
    if bad > 1:
        print("differs", bad, "of the limit", output.dtype, inputs[0].shape)
    worst = max(worst, bad)
print(len(all_inputs), "inputs, the worst error is", worst, "of the limit")
sys.exit(0 if worst <= 1 else 1)
