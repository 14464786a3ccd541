"""Shares, shifts within a mask and between seeds, large seeds, scale, views and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_four_a_call_right.py"))
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


def mask(n, p, seed):
    return call(torch.ones(n), p, seed) != 0


worst = 0.0
n = 16384
seeds = (0, 1, 2, 3, 2**31, 2**32, 2**32 + 1, 2**33, 2**62, 2**63 - 1)
masks = [mask(n, 0.5, seed) for seed in seeds]
shifts = (0, 1, 2, 3, 4, 255, 256, 257, 512, 768, 1024, 2048, 4096, 8192)
for i, a in enumerate(masks):
    for j, b in enumerate(masks):
        for shift in shifts:
            if i == j and shift == 0:
                continue
            share = float((a[shift:] == b[: n - shift]).double().mean())
            worst = max(worst, abs(share - 0.5) / (6 * 0.5 / (n - shift) ** 0.5))
for p in (0.0, 0.001, 0.1, 0.2, 0.25, 0.5, 0.9, 0.99):
    share = float((~mask(n, p, 7)).double().mean())
    worst = max(worst, abs(share - p) / (6 * (p * (1 - p) / n) ** 0.5 + 1e-9))
for dtype, allowed in ((torch.float32, 1e-6), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
    for x in (torch.randn(7, 13), torch.randn(3, 4097), torch.randn(1, 1), torch.randn(40, 6).t(), torch.randn(8, 8)[:, ::2]):
        x = x.to(dtype)
        out = call(x, 0.3, 11)
        same = bool(torch.equal(out, call(x, 0.3, 11)))
        expected = torch.where(out == 0, 0.0, x.double() / 0.7)
        worst = max(worst, difference(out, expected) / allowed, 0.0 if same else 2.0)

print("WRONG" if worst > 1 else "right", "worst deviation", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
