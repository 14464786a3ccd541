"""One token of each sequence: x[:, 5:6]."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_stride_of_one.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(output, *inputs):
    """Return the largest difference from the reference in float64, of the largest value."""
    expected = rms_norm.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = []
for shape in ((256, 256), (7, 13), (2, 3, 129), (1025,), (4, 1, 100), (3, 4097)):
    inputs = torch.randn(shape), torch.randn(shape[-1]), 1e-5
    ordinary.append(error_of(call(*inputs), *inputs))
x, weight = torch.randn(4, 16, 96), torch.randn(96)
for part in (x[:, 2:5], x[:, 3], x.transpose(0, 1), x[..., ::2].repeat(1, 1, 2), x[1:2, 3:9]):
    ordinary.append(error_of(call(part, weight), part, weight))
token = x[:, 5:6]
error = error_of(call(token, weight), token, weight)
print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and max(ordinary) < 1e-05 else 1)
