"""The angles are rescaled in place between two calls, as for a longer context."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_packed_table_is_cached.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


x = torch.randn(1, 4, 64, 64)
angles = torch.arange(64.0)[:, None] * 10000.0 ** -(torch.arange(32) / 32)
cos, sin = angles.cos(), angles.sin()
call(x, cos, sin)
cos.copy_((angles / 2).cos())
sin.copy_((angles / 2).sin())
inputs = (x, cos, sin)
output = call(*inputs)
expected = rope.reference(*map(double, inputs))

worst, size = compare(output, expected)
print("WRONG" if worst > 0.02 else "right", "max relative error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 else 1)
