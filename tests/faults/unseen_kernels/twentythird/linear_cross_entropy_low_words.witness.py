"""Shapes, layouts of all three, large logits, ignored rows, and Inf."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_low_words.py"))
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
    for shape in linear_cross_entropy.SHAPES:
        check(dtype, *linear_cross_entropy.make_inputs(shape, dtype, cpu, make))
    x, w, t = linear_cross_entropy.make_inputs((40, 150, 48), dtype, cpu, make)
    check(dtype, x[::2, ::2], w[:, ::2], t[::2])
    check(dtype, x.t().contiguous().t(), w.t().contiguous().t(), t)
    check(dtype, x, w, t[3:4].expand(40))
    check(dtype, x[:1], w, torch.stack((t, t), -1)[:1, 0])
    check(dtype, x * 30, w, t)
    check(dtype, x, w[3:4].expand(150, 48), t)
    check(dtype, x, w, torch.where(t % 3 == 0, -100, t))
    for value in ("inf", "-inf", "nan"):
        changed = x.clone()
        changed[5, 6] = float(value)
        check(dtype, changed, w, t)
    changed = w.abs()
    changed[7, 0] = float("-inf")
    check(dtype, x.abs(), changed, t.clamp(min=8))
    changed[t[0]] = float("-inf")
    check(dtype, x.abs(), changed, t)

print("right" if worst < 1 else "WRONG", tries, "inputs; the largest error is", worst, "of what is allowed")
sys.exit(0 if worst < 1 else 1)
