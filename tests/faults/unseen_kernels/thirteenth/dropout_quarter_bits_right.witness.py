"""Shares, neighbours, distances, seeds, scales, dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_quarter_bits_right.py"))
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


def dependence(p, seed):
    """Return how often neighbours of a word are both zero, over what independent ones give."""
    zero = call(torch.ones(64, 256), p, seed).view(-1, 16) == 0
    return float((zero[:, 1:] & zero[:, :-1]).double().mean()) / p**2


bad = []
masks = {}
for p in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9):
    for seed in (0, 3, 2**40 + 3):
        out = call(torch.ones(64, 256), p, seed)
        zero = (out == 0).flatten()
        masks[p, seed] = zero
        deviation = abs(float(zero.double().mean()) - p) / max(1e-9, (p * (1 - p) / zero.numel()) ** 0.5)
        bad += [("share", p, seed, deviation)] if deviation > 4.5 else []
        for step in (1, 2, 8, 15, 16, 64, 256, 1024):
            both = float((zero[step:] & zero[:-step]).double().mean())
            deviation = abs(both - p * p) / max(1e-9, (2 * p**2 * (1 - p**2) / zero.numel()) ** 0.5)
            bad += [("distance", step, p, seed, deviation)] if deviation > 4.5 else []
        if not torch.equal(call(torch.ones(64, 256), p, seed), out):
            bad += [("repeat", p, seed)]
        for dtype in (torch.float16, torch.bfloat16, torch.float32):
            x = (1 + torch.rand(64, 256)).to(dtype)
            want = (x.double() / (1 - p)).masked_fill(zero.view(64, 256), 0.0)
            bad += [("scale", p, dtype)] if difference(call(x, p, seed), want) > 8e-3 else []
    for a, b in ((0, 3), (3, 2**40 + 3)):
        if p and abs(float((masks[p, a] == masks[p, b]).double().mean()) - p * p - (1 - p) ** 2) > 0.02:
            bad += [("seeds", p, a, b)]
    if p and abs(dependence(p, 3) - 1) > 0.15:
        bad += [("neighbours", p, dependence(p, 3))] if p > 0.1 else []
print("WRONG" if bad else "right", bad)
sys.exit(0 if bad else 1)
