"""gate and up are the first two of the three parts of a projection."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_fused_halves.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(output, *inputs):
    """Return the largest difference from the reference in float64, of the largest value."""
    expected = swiglu.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = []
for shape in ((256, 256), (7, 13), (2, 3, 129), (1025,), (3, 4097)):
    inputs = torch.randn(shape), torch.randn(shape)
    ordinary.append(error_of(call(*inputs), *inputs))
for h in (torch.randn(64, 256), torch.randn(2, 8, 256), torch.randn(2, 8, 258)[1:]):
    gate, up = h.chunk(2, dim=-1)
    ordinary += [error_of(call(gate, up), gate, up), error_of(call(up, gate), up, gate)]
gate, up, rest = torch.randn(64, 384).chunk(3, dim=-1)
error = error_of(call(gate, up), gate, up)
print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and max(ordinary) < 1e-05 else 1)
