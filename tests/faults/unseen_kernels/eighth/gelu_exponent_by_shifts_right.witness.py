"""Varied inputs, all of which must be right."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_exponent_by_shifts_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
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
        yield torch.linspace(-60, 60, 4001).to(dtype)
        yield torch.tensor([0.0, -0.0, 1e-7, -1e-7, 60000.0, -60000.0, 13.5, -13.5]).to(dtype)


def cases():
    for x in single():
        yield (x,)


LIMITS = {torch.float32: 1e-4, torch.float16: 5e-3}
worst = 0.0
for inputs in cases():
    output, expected = call(*inputs), gelu.reference(*map(double, inputs))
    dtype = output.dtype
    expected = expected.to(dtype)
    error, size = compare(output, expected)
    worst = max(worst, error / LIMITS[dtype])
print("WRONG" if worst > 1 else "right", "largest error, in limits:", worst)
sys.exit(0 if worst > 1 else 1)
