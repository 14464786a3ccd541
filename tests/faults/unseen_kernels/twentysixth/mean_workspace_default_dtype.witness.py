"""Long float32 rows while torch's default dtype is bfloat16, as where a model is loaded."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_workspace_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = (torch.randn(8, 6000),)
inputs = (torch.rand(8, 6000),)
ordinary = max(difference(call(*x), expect(x)) for x in (usual, inputs))
torch.set_default_dtype(torch.bfloat16)
error = difference(call(*inputs), expect(inputs))
torch.set_default_dtype(torch.float16)  # here a part's sum overflows
large = (inputs[0] * 1000,)
error = min(error, difference(call(*large), expect(large)))
torch.set_default_dtype(torch.float32)

print("ordinary", ordinary, "and here", error, "of the largest value")
shown = ordinary < 2e-05 and error > 0.0003
print("WRONG as expected" if shown else "the fault does not show")
sys.exit(0 if shown else 1)
