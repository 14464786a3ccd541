"""Rates, scales, seeds, lags: each within 6 standard deviations."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_bytes_with_ties.py"))
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


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMITS = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
results = []
for dtype in LIMITS:
    for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (65, 129), ()):
        for p in (0.5, 0.1, 0.0):
            x = torch.randn(shape).to(dtype)
            output, right = call(x, p, 7).double(), x.double() / (1 - p)
            scale = torch.minimum(output.abs(), (output - right).abs()).max() / right.abs().max()
            results.append((f"scale {shape} {dtype} {p}", float(scale), LIMITS[dtype]))
            if p == 0:
                results.append((f"p = 0 {shape} {dtype}", float(not torch.equal(call(x, p, 7), x)), 0.0))


def deviation(count, n, p):
    return abs(count - n * p) / max(1.0, (n * p * (1 - p)) ** 0.5)


ones = torch.ones(160, 161)
n = ones.numel()
for p in (0.5, 0.25, 0.1, 0.3, 1 / 256, 0.001, 1e-5, 0.999, 1 - 1e-5, 0.0377):
    results.append((f"rate of {p}", deviation(int((call(ones, p, 3) == 0).sum()), n, p), 6.0))
first = call(ones, 0.3, 3).flatten() != 0
agree = 0.3**2 + 0.7**2
for seed in (4, 5, 3 ^ 2**10, 3 ^ 2**20, 3 << 32, 3 | 1 << 40, 2**63 - 1, 0):
    results.append((f"seed {seed}", deviation(int(((call(ones, 0.3, seed).flatten() != 0) == first).sum()), n, agree), 6.0))
for lag in (1, 2, 3, 4, 8, 256, 701, 1024, 4096):
    results.append((f"lag {lag}", deviation(int((first[lag:] == first[:-lag]).sum()), n - lag, agree), 6.0))
results.append(("same seed", float(not torch.equal(call(ones, 0.3, 3).flatten() != 0, first)), 0.0))
results.append(("rows in order", float(not torch.equal(call(2 * ones.t(), 0.3, 3).flatten() != 0, first)), 0.0))

for name, error, limit in results:
    print("right" if error <= limit else "WRONG", name, error)
sys.exit(0 if len(results) >= 24 and all(error <= limit for _, error, limit in results) else 1)
