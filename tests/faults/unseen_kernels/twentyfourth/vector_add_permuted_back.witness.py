"""Images whose channels are last in memory: [2, 8, 8, 8] permuted."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_permuted_back.py"))
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


ordinary = []
for shape in ((256, 256), (7, 13), (2, 3, 129), (1025,), (2, 1, 5, 1)):
    inputs = torch.randn(shape), torch.randn(shape), 0.5
    ordinary.append(error_of(call(*inputs), *inputs))
x, y = torch.randn(7, 5, 6), torch.randn(5, 7, 6)
for a, b in ((x.transpose(0, 1), y), (x.transpose(1, 2), x.transpose(1, 2)), (x.permute(2, 1, 0), x.permute(2, 1, 0)),
             (x[:, ::2], x[:, ::2]), (x[:1].expand(3, 5, 6), y[:3, :5])):
    ordinary.append(error_of(call(a, b, -2.0), a, b, -2.0))
x, y = torch.randn(2, 8, 8, 8).permute(0, 3, 1, 2), torch.randn(2, 8, 8, 8)
error = error_of(call(x, y, 0.5), x, y, 0.5)
z = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
print("shape", tuple(z.shape), "gives", tuple(call(z, z).shape))
print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and max(ordinary) < 1e-06 else 1)
