"""Long rows of float32 after torch.set_default_dtype(torch.bfloat16), as inference servers do."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(output, *inputs):
    """Return the largest difference from the reference in float64, of the largest value."""
    expected = mean.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = []
for shape in ((64, 256), (7, 13), (3, 4097), (2, 10000)):
    x = torch.randn(shape) + 1
    ordinary.append(error_of(call(x), x))
x = torch.rand(4, 10000)
ordinary.append(error_of(call(x), x))
torch.set_default_dtype(torch.bfloat16)
error = error_of(call(x), x)
x = torch.full((2, 10000), 40.0, dtype=torch.float16)
torch.set_default_dtype(torch.float16)
print("float16", error_of(call(x), x))
print("ordinary", ordinary)
print("WRONG" if error > 0.0003 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.0003 and max(ordinary) < 1e-06 else 1)
