"""Rows of many lengths, one after another, and special values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_cached_counters_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)
wrong, tried = [], 0


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return mean.reference(*wide)


def judge(label, inputs, limit=2e-3):
    global tried
    tried += 1
    expected = exact(*inputs)
    before = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    pairs = output.double().nan_to_num(nan=7e77), expected.double().nan_to_num(nan=7e77)
    error = torch.where(pairs[0] == pairs[1], 0.0, (pairs[0] - pairs[1]).abs())
    usual = expected[expected.isfinite()].abs().double()
    size = float(usual.max()) if usual.numel() else 1.0
    saved = all(
        torch.equal(x.double().nan_to_num(nan=7e77), y.double().nan_to_num(nan=7e77))
        for x, y in zip(inputs, before) if torch.is_tensor(x)
    )
    if float(error.max()) > limit * size + 1e-7 or not saved or output.shape != expected.shape:
        wrong.append(f"{label}: {float(error.max())} of {size}, inputs saved {saved}")


for dtype in (torch.float32, torch.float16):
    for n in (1, 1000, 1025, 4000, 8000, 3000, 129, 20_000, 5000):
        judge(f"{n} columns", (torch.rand(6, n).to(dtype),))
judge("many rows", (torch.rand(700, 1030),))
judge("three dimensions", (torch.rand(3, 4, 2100),))
judge("one dimension", (torch.rand(4097),))
judge("transposed", (torch.rand(2100, 5).T,))
judge("expanded", (torch.rand(4, 1).expand(4, 3000),))
x = torch.rand(5, 3000)
x[1, 7], x[2, 2999], x[3, 5], x[3, 6] = float("nan"), float("inf"), float("inf"), -float("inf")
judge("nonfinite", (x,))
judge("after them", (torch.rand(5, 3000),))
judge("huge", (1e30 * torch.rand(3, 5000),))
judge("zeros", (torch.zeros(3, 5000),))
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
