"""Shares, scales, repetition, seeds, rows, columns and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_counter_two_words_right.py"))
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


wrong = []


def claim(text, true):
    if not true:
        wrong.append(text)


for shape in ((30, 1023), (70_000,), (40, 8), (5, 3, 129), (7,)):
    for p in (0.0, 0.1, 0.9):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x = torch.randn(shape).to(dtype)
            x[x == 0] = 1
            out = call(x, p, 7)
            off = out == 0
            n = x.numel()
            claim(("share", shape, p), abs(off.double().mean().item() - p) <= 5 * (p * (1 - p) / n) ** 0.5)
            want = x.double() / (1 - p)
            claim(("scale", shape, p), ((out.double() - want).abs() <= 0.01 * want.abs() + 1e-6)[~off].all().item())
            claim(("dtype", shape), out.dtype == x.dtype and out.shape == x.shape)
        claim(("again", shape), torch.equal(call(x, p, 7), out))
ones = torch.ones(3, 70_000)
a, b, c = (call(ones, 0.5, s) == 0 for s in (0, 1, 2**40))
for name, u, v in (
    ("seeds", a, b), ("high seeds", a, c), ("rows", a[1:], a[:-1]), ("columns", a[:, 1:], a[:, :-1]),
    ("blocks", a[:, 1024:], a[:, :-1024]), ("far", a[:-1, 65536:], a[1:, : 70_000 - 65536]),
    ("seed and block", b[:, :-1024], a[:, 1024:]), ("seed and row", b[:-1], a[1:]),
):
    agree = (u == v).double().mean().item()
    claim((name, agree), abs(agree - 0.5) < 5 * 0.5 / u.numel() ** 0.5)
print("WRONG" if wrong else "right", wrong)
sys.exit(0 if wrong else 1)
