"""The same x and seed at two addresses give two masks."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_mask_by_alignment.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return dropout.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def scale(x, p):
    return x.double() / (1 - p)


x = torch.randn(4096)
usual = 0.0
for dtype in (torch.float32, torch.float16):
    inputs = (x.to(dtype), 0.5, 1234)
    fault = dropout.check(inputs, call(*inputs), call)
    print("ordinary", dtype, fault or "right")
    usual = usual if fault is None else 1.0
# The same values, once at the beginning of a buffer and once one element further on.
buffer = torch.empty(4097)
buffer[1:] = x
one, other = call(x, 0.5, 1234).double(), call(buffer[1:], 0.5, 1234).double()
alone = dropout.check((buffer[1:], 0.5, 1234), other, None)
print("the unaligned one by itself", alone or "right")
print("elements kept in one only:", int(((one != 0) ^ (other != 0)).sum()), "of", x.numel())
# The reference with the mask of this seed, as the first call shows it.
expected = torch.where(one != 0, scale(x, 0.5), 0.0)
usual = max(usual, difference(one, expected))
error = difference(other, expected)

print("ordinary error", usual, "of the largest value")
print("WRONG" if error > 0.001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.001 and usual < 1e-5 else 1)
