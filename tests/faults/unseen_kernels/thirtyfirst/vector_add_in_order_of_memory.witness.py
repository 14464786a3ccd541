"""Shapes, dtypes, layouts and values of alpha."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_in_order_of_memory.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = vector_add.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


errors = []
for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (127, 129), (1000, 1)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for alpha in (1.0, -2.0, 0.1, 0.0, -1, 3):
            x, y = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
            errors.append(error_of(x, y, alpha))
a, b, c = torch.randn(64, 64), torch.randn(64, 64), torch.randn(8, 4, 16, 3)
pairs = [(a, b.T), (a.T, b.T), (a[:, ::2], b[:, ::2]), (a, a), (a, a.T), (a[:1].expand(64, 64), b)]
pairs += [(c.permute(0, 3, 1, 2), c.permute(0, 3, 1, 2)), (c.permute(2, 1, 0, 3), c.permute(2, 1, 0, 3))]
pairs += [(a.as_strided((8, 8), (4, 1)), b.as_strided((8, 8), (4, 1))), (a[1:, 1:], b[1:, 1:])]
pairs += [(a[:, :1], b[:, 3:4]), (a.view(-1)[3:], b.view(-1)[3:]), (a[:0], b[:0])]
for x, y in pairs:
    errors.append(error_of(x, y, 0.5) if x.numel() else 0.0 * call(x, y, 0.5).numel())
x, y = torch.randn(9, 9), torch.randn(9, 9)
x[0, 0], y[0, 0], y[1, 1], x[2, 2], y[3, 3] = *[float("inf")] * 3, float("nan"), float("nan")
errors += [error_of(x, y, alpha) for alpha in (1.0, -1.0, 0.0, 0.5)]

worst = max(errors)
print(len(errors), "inputs, largest error", worst)
sys.exit(0 if worst < 0.01 else 1)
