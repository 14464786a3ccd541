"""Sizes about a block, types, factors, views and infinities."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_moved_tail.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


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


TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
DTYPES = tuple(TOLERANCE)
worst, count = 0.0, 0


def check(dtype, *inputs):
    global worst, count
    before = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    worst = max(worst, error_of(*inputs) / TOLERANCE[dtype])
    for old, new in zip(before, inputs):
        if torch.is_tensor(old) and not torch.equal(old.nan_to_num(), new.nan_to_num()):
            worst = float("inf")
    count += 1


for dtype in DTYPES:
    for n in (1, 2, 3, 511, 512, 513, 1023, 1024, 1025, 4097):
        for alpha in (1.0, -2.0, 0.0):
            check(dtype, torch.randn(n).to(dtype), torch.randn(n).to(dtype), alpha)
    x = torch.randn(127, 129).to(dtype)
    check(dtype, x, x, -1.0)
    check(dtype, x[:, ::2], x[:, 1:].expand(127, 128)[:, :65], 0.1)
    check(dtype, x.t(), torch.randn(129, 127).to(dtype), 2)
    x = torch.randn(600).to(dtype)
    x[590] = float("inf")
    check(dtype, torch.randn(600).to(dtype), x, 0.0)

print("right" if worst <= 1.0 else "WRONG", "in", count, "inputs, worst", worst, "of the tolerance")
sys.exit(0 if worst <= 1.0 else 1)
