"""Embeddings of positions expanded over a batch of 8."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_expanded_once.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return dropout.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def fault(x, p, seed):
    """0 where the mask is independent from slice to slice and the scale is right, else 1."""
    output = call(x, p, seed)
    cached = output != 0
    scaled = (x.double() / (1 - p)).to(x.dtype)
    wrong = ((output - scaled).abs() > 1e-2 * scaled.abs()) & cached
    rate = abs(float(cached.double().mean()) - (1 - p))
    alike = max((float((a == b).double().mean()) for a, b in zip(cached, cached[1:])), default=0)
    return float(bool(wrong.any()) or rate > 0.05 or alike > 0.9)


ordinary = max(
    fault(x, p, seed)
    for x in (torch.randn(8, 50, 64), torch.randn(64, 1000).half(), torch.randn(64, 300).t())
    for p in (0.5, 0.25) for seed in (0, 5)
)
x = torch.randn(1, 50, 64).expand(8, 50, 64)
error = fault(x, 0.5, 0)
cached = call(x, 0.5, 0) != 0
print("slices that have the first one's mask:", sum(torch.equal(a, cached[0]) for a in cached), "of 8")
print("an ordinary input:", ordinary)
shows = ordinary < 0.1 and error > 0.5
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
