"""Share, scale, seeds, and the share of pairs at many distances of which both survive."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_four_draws_right.py"))
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
for p in (0.0, 0.5, 0.3, 0.1, 0.9, 0.99):
    alive = call(torch.ones(256, 1024), p, 7) != 0
    worst = max(worst, abs(float(alive.double().mean()) - (1 - p)) / 0.005)
    flat = alive.flatten()
    for distance in (1, 2, 4, 128, 255, 256, 257, 512, 768, 1024, 2048, 4096, 65536):
        both = float((flat[distance:] & flat[:-distance]).double().mean())
        worst = max(worst, abs(both - (1 - p) ** 2) / 0.01)
    for seed in (8, 0, 1, 7 + 2**32, 2**63 - 1):
        other = call(torch.ones(256, 1024), p, seed) != 0
        agree = float((other == alive).double().mean())
        worst = max(worst, abs(agree - (1 - p) ** 2 - p**2) / 0.01)
for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (1000, 1), (64, 33)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(shape).to(dtype)
        out = call(x, 0.25, 3)
        again = call(x.clone(), 0.25, 3)
        fits = (out == 0) | ((out.double() - x.double() / 0.75).abs() <= {torch.bfloat16: 0.011}.get(dtype, 0.001) * x.double().abs())
        worst = max(worst, 0.0 if bool(fits.all()) and torch.equal(out, again) and out.shape == x.shape else 9.0)
x = torch.randn(33, 64)
worst = max(worst, 0.0 if torch.equal(call(x.t(), 0.5, 3), call(x.t().contiguous(), 0.5, 3)) else 9.0)
broken = call(torch.full((4096,), float("inf")), 0.5, 3)
worst = max(worst, 9.0 if bool(broken.isnan().any()) else 0.0)
print("WRONG" if worst > 1 else "right", "worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
