"""Ordinary, large, tiny and zero rows, and strided weights."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_scaled_squares.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


DTYPES = torch.float32, torch.float16, torch.bfloat16
SHAPES = (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (17, 511), (40, 1)

cases = [
    (torch.randn(s).to(d), torch.randn(s[-1]).to(d), eps)
    for s, eps in zip(SHAPES, (1e-5, 1e-6, 1e-3) * 3)
    for d in DTYPES
]
for d in DTYPES:
    for size in (1e-4, 3e-3, 250.0, 2e4):
        scaled = (torch.randn(4, 700) * size).clamp(-6e4, 6e4).to(d)
        cases.append((scaled, torch.randn(700).to(d), 1e-6))
    cases.append((torch.zeros(3, 50).to(d), torch.randn(50).to(d), 1e-5))
    cases.append((torch.randn(300, 9).to(d).t(), torch.randn(600).to(d)[::2], 1e-5))
    cases.append((torch.randn(4, 300).to(d), torch.randn(1).to(d).expand(300), 1e-3))
for size in (1e-30, 1e-20, 1e15, 1e30, 5e37):
    cases.append((torch.randn(4, 700) * size, torch.randn(700), 1e-5))
mixed = torch.randn(6, 3000) * torch.tensor([1e-20, 1e-3, 1.0, 1e10, 1e25, 3e37])[:, None]
cases += [(mixed[i : i + 1], torch.randn(3000), 1e-5) for i in range(6)]

worst = 0.0
for i, inputs in enumerate(cases):
    error = difference(call(*inputs), expect(inputs)) / LIMITS[inputs[0].dtype]
    if not error < 1:
        print("case", i, inputs[0].shape, inputs[0].dtype, "error of the limit:", error)
    worst = max(worst, error)
print("worst of", len(cases), "cases:", worst, "of the dtype's limit")
sys.exit(0 if worst < 1 else 1)
