"""Shapes with and without whole words, layouts, and -128."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_words.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return quantized_matmul.reference(*map(wide, inputs))


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

for dtype in (torch.float32, torch.float16):  # the interpreter's tl.dot takes no bfloat16
    for shape in (*quantized_matmul.SHAPES, (5, 70, 4), (17, 33, 64), (3, 65, 132), (65, 40, 260)):
        check(dtype, *quantized_matmul.make_inputs(shape, dtype, cpu, make))
    x, w, s = quantized_matmul.make_inputs((20, 72, 136), dtype, cpu, make)
    check(dtype, x[::2, ::2], w[:, ::2], s)
    check(dtype, x.t().contiguous().t(), w.t().contiguous().t(), s)
    check(dtype, x, w, s[:1].expand(72))
    check(dtype, x[:, :132], w.view(-1)[3 : 3 + 72 * 132].view(72, 132), s)  # not aligned to words
    check(dtype, x, w[:1], s[:1])
    check(dtype, x, torch.full_like(w, -128), s)
    check(dtype, x, torch.full_like(w, 127), s)
    check(dtype, x[:, :0], w[:, :0], s)

print("right" if worst < 1 else "WRONG", tries, "inputs; the largest error is", worst, "of what is allowed")
sys.exit(0 if worst < 1 else 1)
