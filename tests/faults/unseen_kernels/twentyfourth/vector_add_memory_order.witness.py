"""All permutations of four dimensions, slices, expanded inputs, scalars, many blocks."""

import importlib.util
import itertools
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_memory_order.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(output, *inputs):
    """Return the largest difference from the reference in float64, of the largest value."""
    expected = vector_add.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


errors = []
base = torch.randn(3, 4, 5, 6)
for order in itertools.permutations(range(4)):
    x = base.permute(order)
    y = torch.randn(x.shape)
    errors += [error_of(call(x, y, -2.0), x, y, -2.0), error_of(call(y, x, 0.1), y, x, 0.1)]
for shape in ((), (1,), (1, 1), (7, 13), (1025,), (1000, 1), (257, 1023), (2, 1, 5, 1)):
    for dtype in (torch.float32, torch.float16):
        x, y = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
        small = 1e-6 if dtype == torch.float32 else 1e-3
        errors.append(error_of(call(x, y), x, y) * 1e-6 / small)
x = torch.randn(8, 9, 10)
for view in (x[:, ::2], x[1:, :, 3:4], x[:1].expand(4, 9, 10), x.permute(1, 2, 0)[::3], x[:, :0]):
    y = torch.randn(view.shape)
    errors.append(error_of(call(view, y, 3), view, y, 3) if view.numel() else 0.0)
x, y = torch.randn(4, 4), torch.full((4, 4), torch.inf)
y[0], x[1, 1], y[2, 2] = 1.0, torch.nan, -torch.inf
errors += [error_of(call(x, y, alpha), x, y, alpha) for alpha in (0.0, 1, -1.0)]
print("largest error", max(errors), "of", len(errors))
sys.exit(0 if max(errors) < 2e-06 else 1)
