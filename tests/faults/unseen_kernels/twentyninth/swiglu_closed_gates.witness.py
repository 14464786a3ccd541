"""Gates of -21 to -40 in a whole tile, with up of 1e12, in float32 and bfloat16; up of 6e4 in float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_closed_gates.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    """Return the largest error, as a part of the largest expected value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs()
    size = size.max().clamp(min=1e-300) if size.numel() else 1.0
    return float(error.masked_fill(same, 0.0).max() / size) if error.numel() else 0.0


def error_of(*inputs):
    expected = swiglu.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)

ordinary = max(
    error_of(torch.randn(37, 100), torch.randn(37, 100)),
    error_of(10 * torch.randn(2049), 10 * torch.randn(2049)),
    error_of(5 * torch.randn(4000) - 18, torch.randn(4000)),
)
gate = -21 - 19 * torch.rand(20, 100)
up = torch.randn(20, 100)
for dtype, size in ((torch.float16, 2e4), (torch.bfloat16, 1e12)):
    inputs = gate.to(dtype), (size * up.clamp(-3, 3)).to(dtype)
    expected = float(swiglu.reference(*map(wide, inputs)).abs().max())
    print(dtype, "error", error_of(*inputs), "of the largest value,", expected)
error = error_of(gate, 1e12 * up)

print("ordinary error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 1e-05 and error > 0.02 else 1)
