"""Shapes, dtypes, layouts, large and tiny values, NaN and Inf."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_table.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
errors = []


def see(*inputs):
    before = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    error = error_of(*inputs)
    errors.append(error / LIMITS[inputs[0].dtype])
    if errors[-1] >= 1:
        print(inputs[0].dtype, inputs[0].shape, inputs[0].stride(), inputs[1:][-1:], errors[-1])
    for x, y in zip(inputs, before, strict=True):
        assert not torch.is_tensor(x) or torch.equal(x.nan_to_num(), y.nan_to_num())


for dtype in LIMITS:
    for shape in (*op.SHAPES, (), (0,), (3, 0, 2)):
        if 0 not in shape:
            see(torch.randn(shape).to(dtype))
        else:
            assert call(torch.empty(shape, dtype=dtype)).shape == shape
    for scale in (1e-3, 0.1, 10.0, 1e4):
        see((scale * torch.randn(3000)).to(dtype))
    x = torch.randn(30, 40, 8).to(dtype)
    for y in (x.transpose(0, 2), x[:, ::2], x[1:, 1:, 1:], x[:, :1].expand(30, 5, 8), x.flatten()[1:]):
        see(y)
    odd = torch.tensor([float("nan"), float("inf"), 0.0, -0.0, 6e4, -6e4, 1.0], dtype=dtype)
    see(odd)

print(len(errors), "inputs, the largest error is", max(errors), "of the limit")
sys.exit(0 if max(errors) < 1 else 1)
