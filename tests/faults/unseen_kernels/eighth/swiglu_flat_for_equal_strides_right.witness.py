"""Varied inputs, all of which must be right."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_flat_for_equal_strides_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


SHAPES = ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 1537), (1000, 1), (33, 257))


def special(dtype):
    x = torch.randn(16, 700)
    x[0, 3], x[1, 0], x[2, 650] = float("inf"), -float("inf"), float("nan")
    x[3, 5] = -torch.tensor(float("nan")).abs()
    x[4], x[5], x[6] = -float("inf"), 0.0, -0.0
    x[7], x[8] = -x[7].abs(), -20000.0 - x[8].abs()
    x[9, 600:] = -float("inf")
    return x.to(dtype)


def single():
    for dtype in (torch.float32, torch.float16):
        for shape in SHAPES:
            yield torch.randn(shape).to(dtype)
        base = torch.randn(48, 700).to(dtype)
        yield from (base.T, base[:, ::2], base[::2], base[:, 1:600], base[:1].expand(8, -1))
        yield from (10 * base, 100 * base, base - 1000, 1e-4 * base)


def cases():
    for x in single():
        yield x, torch.randn(x.shape).to(x.dtype)
    for dtype in (torch.float32, torch.float16):
        a = torch.randn(65, 65).to(dtype)
        yield a, a.T
        yield a.T, a.T
        yield a, a
        yield a[:1].expand(5, -1), a[:5]
        yield a[:1].expand(5, -1), a[:1].expand(5, -1)
        yield a[:, ::2], a[:, 1::2].new_ones(65, 33)
        yield a[:, :32], a[:, 32:64]
        b = torch.randn(3, 4, 5, 6).to(dtype)
        yield b.permute(2, 0, 3, 1), b.permute(2, 0, 3, 1) + 1
        yield b.transpose(1, 2), b.transpose(1, 2)[...]
        yield b[:, 1:3], b[:, 2:4]
        yield b[:1].transpose(0, 1), b[:1].transpose(0, 1)


LIMITS = {torch.float32: 1e-4, torch.float16: 5e-3}
worst = 0.0
for inputs in cases():
    output, expected = call(*inputs), swiglu.reference(*map(double, inputs))
    dtype = output.dtype
    expected = expected.to(dtype)
    error, size = compare(output, expected)
    worst = max(worst, error / LIMITS[dtype])
print("WRONG" if worst > 1 else "right", "largest error, in limits:", worst)
sys.exit(0 if worst > 1 else 1)
