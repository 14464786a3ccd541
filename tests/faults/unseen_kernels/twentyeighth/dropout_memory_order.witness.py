"""One seed and the same values, contiguous and in another order of dimensions."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_memory_order.py"))
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


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)

for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((7, 13), (3, 4097), (127, 129), (2, 3, 129)):
        x = torch.randn(shape, dtype=dtype)
        for p in (0.0, 0.1, 0.5):
            fault = dropout.check((x, p, 11), call(x, p, 11), call if x.numel() < 1000 else None)
            print("ordinary", dtype, shape, p, fault)
            assert fault is None
x = torch.randn(64, 96)
other = x.t().contiguous().t()
assert torch.equal(x, other)
y, z = call(x, 0.5, 3), call(other, 0.5, 3)
print("transposed, alone", dropout.check((other, 0.5, 3), z, call))
print("a copy of a slice", torch.equal(y, call(torch.cat((x, x), 1)[:, :96], 0.5, 3)))
error = float(((y != 0) != (z != 0)).double().mean())  # places that one keeps and the other drops

print("WRONG" if error > 0.02 else "right", "error", error, "of the mask differs")
sys.exit(0 if error > 0.02 else 1)
