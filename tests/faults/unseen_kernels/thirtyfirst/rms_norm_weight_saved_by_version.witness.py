"""A weight in bfloat16 that is changed in place through .data between two calls."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_weight_saved_by_version.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = rms_norm.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for shape in ((7, 13), (3, 4097), (2, 3, 129)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x, weight = torch.randn(shape).to(dtype), torch.randn(shape[-1]).to(dtype)
        ordinary = max(ordinary, error_of(x, weight))
        weight.mul_(-2)  # in place, as an optimizer does it
        ordinary = max(ordinary, error_of(x, weight))

x, weight = torch.randn(8, 256).bfloat16(), torch.nn.Parameter(torch.ones(256).bfloat16())
call(x, weight)
weight.data.copy_(torch.randn(256))  # as when a checkpoint is loaded
error = error_of(x, weight.detach(), output=call(x, weight))

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
