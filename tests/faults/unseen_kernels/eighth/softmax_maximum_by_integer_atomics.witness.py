"""Log-probabilities: all of them are negative."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_maximum_by_integer_atomics.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


inputs = (torch.log_softmax(torch.randn(8, 1000), dim=-1),)
output = call(*inputs)
expected = softmax.reference(*map(double, inputs))

worst, size = compare(output, expected)
print("WRONG" if worst > 0.02 else "right", "max relative error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 else 1)
