"""A square matrix times its transposed view; a vector against itself, both expanded."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_square.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(output, *inputs):
    """Return the largest difference from the reference in float64, of the largest value."""
    expected = vector_mul.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = []
for shape in ((256, 256), (7, 13), (2, 3, 129), (1025,)):
    inputs = torch.randn(shape), torch.randn(shape)
    ordinary.append(error_of(call(*inputs), *inputs))
    ordinary.append(error_of(call(inputs[0], inputs[0]), inputs[0], inputs[0]))
    ordinary.append(error_of(call(inputs[0].T, inputs[1].T), inputs[0].T, inputs[1].T) if len(shape) == 2 else 0.0)
w = torch.randn(100, 100)
error = error_of(call(w, w.T), w, w.T)
v = torch.randn(64)
print("outer product", error_of(call(*torch.broadcast_tensors(v, v[:, None])), *torch.broadcast_tensors(v, v[:, None])))
print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and max(ordinary) < 1e-06 else 1)
