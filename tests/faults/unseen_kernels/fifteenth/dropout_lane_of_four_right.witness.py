"""Rates, scales, neighbours, distances, seeds of all sizes, views."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_lane_of_four_right.py"))
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

bad = []
x = torch.ones(128, 256)
for p in (0.5, 0.1, 0.75, 0.01):
    for seed in (1, 2**63 - 1):
        y = call(x, p, seed)
        rate = float((y != 0).double().mean())
        if abs(rate - (1 - p)) > 6 * (p * (1 - p) / x.numel()) ** 0.5:
            bad += [("rate", p, seed, rate)]
        if not torch.allclose(y[y != 0], torch.tensor(1 / (1 - p))) or not torch.equal(y, call(x, p, seed)):
            bad += [("scale or repetition", p, seed)]
masks = [(call(x, 0.5, seed) != 0).flatten().double() - 0.5 for seed in (0, 1, 2, 256, 2**31, 2**32, 2**32 + 1, 2**62)]
limit = 6 * 0.25 / x.numel() ** 0.5
for i, a in enumerate(masks):
    for step in (1, 2, 3, 4, 128, 256, 512, 1024, 16384):
        if abs(float((a[step:] * a[:-step]).mean())) > 2 * limit:
            bad += [("distance", i, step)]
    if abs(float((a * a.flip(0)).mean())) > 2 * limit:
        bad += [("mirror", i)]
    for j, b in enumerate(masks[:i]):
        for step in (0, 1, 4, 256):
            if abs(float((a[step:] * b[: len(b) - step]).mean())) > limit * 1.5:
                bad += [("seeds", i, j, step)]
z = torch.randn(30, 40)
if not torch.equal(call(z, 0.0, 5), z) or not torch.equal(call(z.t(), 0.5, 3), call(z.t().contiguous(), 0.5, 3)):
    bad += ["p = 0 or a view"]
for dtype in (torch.float16, torch.bfloat16):
    y = call(z.to(dtype), 0.5, 3)
    if y.dtype != dtype or not torch.equal(y != 0, call(z, 0.5, 3) != 0):
        bad += [dtype]

print("WRONG" if bad else "right", bad)
sys.exit(0 if bad else 1)
