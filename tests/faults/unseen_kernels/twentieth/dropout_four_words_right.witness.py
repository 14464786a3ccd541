"""Shapes, dtypes, probabilities: shares, scales, seeds, and correlations between seeds and along a mask."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_four_words_right.py"))
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

worst = 0.0
cases = 0
for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (127, 129)):
    for p in (0.0, 0.1, 0.5, 0.9):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x = (1 + torch.rand(shape)).to(dtype)
            y = call(x, p, 12345)
            mask = y != 0
            cases += 1
            n = x.numel()
            spread = max((p * (1 - p) / n) ** 0.5, 1e-9)
            worst = max(worst, abs(float(mask.double().mean()) - (1 - p)) / spread / 5)
            worst = max(worst, difference(y, torch.where(mask, x.double() / (1 - p), 0.0)) / (1e-5 if dtype == torch.float32 else 1e-2))
            worst = max(worst, 0.0 if torch.equal(y, call(x, p, 12345)) else 9.0)
x = torch.ones(1 << 15)
for p in (0.3, 0.5):
    masks = {seed: (call(x, p, seed) != 0).double() for seed in (0, 1, 2**32, (1 << 32) | 1, 2**63 - 1)}
    again = list(masks.values())
    for i, a in enumerate(again):
        for b in again[:i]:
            correlation = float(torch.corrcoef(torch.stack([a, b]))[0, 1])
            worst = max(worst, abs(correlation) * len(a) ** 0.5 / 5)
        for lag in (1, 2, 4, 128, 512, 1024, 1 << 13, 1 << 14, 3 << 13):
            correlation = float(torch.corrcoef(torch.stack([a[lag:], a[:-lag]]))[0, 1])
            worst = max(worst, abs(correlation) * (len(a) - lag) ** 0.5 / 5)
        cases += 1
print("WRONG" if worst > 1 else "right", "over", cases, "inputs, worst distance", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
