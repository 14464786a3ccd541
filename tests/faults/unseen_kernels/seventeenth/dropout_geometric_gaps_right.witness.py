"""Shares in all, at the ends of blocks and of neighbours, for many p; the seed; the scale."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_geometric_gaps_right.py"))
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
for p in (0.003, 0.05, 0.1, 0.3, 0.5, 0.9):
    for seed in (2**40 + 1,):
        x = 1 + torch.rand(60, 1024)
        out, again, other = call(x, p, seed), call(x, p, seed), call(x, p, seed + 1) == 0
        dropped = out == 0
        assert torch.equal(out, again) and not torch.equal(dropped, other)
        worst = max(worst, difference(out, (x.double() / (1 - p)).masked_fill(dropped, 0.0)) / 1e-5)
        d = dropped.double()
        pairs = d[1:] * d[:-1], d[:, 1:] * d[:, :-1], d[:, 2:] * d[:, :-2], d * other.double()
        for sample, share in ((d, p), (d[:, :32], p), (d[:, -32:], p), *((part, p * p) for part in pairs)):
            # Seven tests for each p and seed; products of neighbours share elements: at most six widths.
            width = (share * (1 - share) / sample.numel()) ** 0.5
            worst = max(worst, abs(float(sample.mean()) - share) / width / 6)
for dtype in (torch.float16, torch.bfloat16):
    x = torch.randn(3, 1025).to(dtype)
    assert torch.equal(call(x, 0.0, 5), x)
    out = call(x, 0.5, 5)
    assert torch.equal(out, (2 * x).masked_fill(out == 0, 0.0))
print("WRONG" if worst > 1 else "right", "worst", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
