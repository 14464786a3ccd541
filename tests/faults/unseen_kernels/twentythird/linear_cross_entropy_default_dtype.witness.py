"""float32 inputs while the default dtype is bfloat16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return linear_cross_entropy.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


make = torch.Generator().manual_seed(0)
inputs = linear_cross_entropy.make_inputs((7, 1000, 31), torch.float32, torch.device("cpu"), make)
usual = difference(call(*inputs), expect(inputs))
torch.set_default_dtype(torch.bfloat16)  # as while a model is built in bfloat16
for scale in (1, 10):
    x, weight, target = inputs
    changed = (x * scale, weight, target)
    error = difference(call(*changed), expect(changed))
    print("default dtype bfloat16, logits of about", scale, "error", error)
torch.set_default_dtype(torch.float32)

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 1e-06 and error > 0.001 else 1)
