"""Long rows of float32 in a program that has set bfloat16 as the default dtype."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_stats_of_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = softmax.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for shape in ((7, 13), (3, 4097), (2, 3, 129), (257, 100), (2, 20000)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        ordinary = max(ordinary, error_of(torch.randn(shape).to(dtype)))

x = 8 * torch.randn(3, 20000)
print("float32 as the default: error", error_of(x))
torch.set_default_dtype(torch.bfloat16)
output = call(x)
torch.set_default_dtype(torch.float32)
error = error_of(x, output=output)

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
