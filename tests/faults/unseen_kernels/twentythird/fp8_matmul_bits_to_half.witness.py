"""Shapes, layouts, tiny and large values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_bits_to_half.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def tolerance(dtype):
    return {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[dtype]


worst, tries = 0.0, 0


def check(dtype, *inputs):
    global worst, tries
    tries += 1
    worst = max(worst, difference(call(*inputs), expect(inputs)) / tolerance(dtype))


make = torch.Generator().manual_seed(0)
cpu = torch.device("cpu")

def expect(inputs):  # a and b stay float8 for the reference
    a, b, *scales = inputs
    return fp8_matmul.reference(a, b, *map(wide, scales))


for dtype in (torch.float16, torch.bfloat16):
    for shape in fp8_matmul.SHAPES:
        a, b, s, t = fp8_matmul.make_inputs(shape, dtype, cpu, make)
        check(dtype, a, b, s, t)
    a, b, s, t = fp8_matmul.make_inputs((40, 70, 130), dtype, cpu, make)
    check(dtype, a[::2, ::3], b[:, ::3], s[::2], t)
    check(dtype, a.t().contiguous().t(), b.t().contiguous().t(), s, t)
    check(dtype, a[:1].expand(40, 130), b, s[:1].expand(40), t)
    for size in (0.003, 0.01, 0.1, 1.0):
        check(dtype, (torch.randn(40, 130) * size).to(a.dtype), b, s / size, t)
        check(dtype, (torch.randn(40, 130) * size).to(a.dtype), (torch.randn(70, 130) * size).to(a.dtype), s / size, t / size)
    check(dtype, torch.full((40, 130), 448.0).to(a.dtype), torch.full((70, 130), -448.0).to(a.dtype), s / 50, t / 50)
    check(dtype, a[:, :0], b[:, :0], s, t)
    a = a.clone()
    a.view(torch.uint8)[3, 5] = 0xFF  # NaN
    check(dtype, a, b, s, t)

print("right" if worst < 1 else "WRONG", tries, "inputs; the largest error is", worst, "of what is allowed")
sys.exit(0 if worst < 1 else 1)
