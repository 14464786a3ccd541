"""A rest of 2,000 elements."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_one_tail.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


def inputs(*shape):
    return torch.randn(shape), torch.randn(shape)

shapes = [(1, 1), (1025,), (127, 129), (257, 1023), (512, 1024), (300, 1000)]
usual = max(show(str(shape), error_of(*inputs(*shape))) for shape in shapes)
x, y = inputs(2**18 + 2000)
expected = expect((x, y))
torch.empty_like(x).fill_(1e3)  # label an allocator may give again
error = show("2**18 + 2000", difference(call(x, y), expected))
print("wrong places", (call(x, y) != x * y).nonzero().flatten()[[0, -1]].tolist())

print("WRONG" if usual < 1e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
