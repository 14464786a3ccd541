"""a @ a.T in the same memory and others that look alike."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_gram.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


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
    for m, n, k in [(1, 1, 1), (7, 5, 13), (65, 127, 129), (33, 65, 40)]:
        check(dtype, torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype))
        a = torch.randn(m, k).to(dtype)
        check(dtype, a, a.t())
        check(dtype, a.t(), a)
        big = torch.randn(150, 150).to(dtype)
        check(dtype, big[:m, :k], big[:n, :k].t())  # begins in the same place, another shape
        check(dtype, big[:m, :m], big[:m, :m])
        check(dtype, big[:m, ::2], big[:m, ::2].t())
    a = torch.randn(100).to(dtype).unfold(0, 40, 1)  # rows that overlap
    check(dtype, a, a.t())
    check(dtype, a[:40], a[:40])

print("right" if worst <= 1.0 else "WRONG", "in", count, "inputs, worst", worst, "of the tolerance")
sys.exit(0 if worst <= 1.0 else 1)
