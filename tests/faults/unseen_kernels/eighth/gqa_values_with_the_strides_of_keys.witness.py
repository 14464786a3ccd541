"""k comes transposed out of a projection, v is contiguous."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_values_with_the_strides_of_keys.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


q = torch.randn(1, 4, 64, 32)
k = torch.randn(1, 64, 2, 32).transpose(1, 2)
v = torch.randn(1, 2, 64, 32)
inputs = (q, k, v, True)
output = call(*inputs)
expected = gqa.reference(*map(double, inputs))

worst, size = compare(output, expected)
print("WRONG" if worst > 0.02 else "right", "max relative error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 else 1)
