"""Columns of a matrix whose width is no multiple of 4 (float32) or 8."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_vector_strides.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest difference from the reference in float64, in units of its largest value."""
    output = call(*inputs).double()
    expected = swiglu.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def columns(rows, n, width, dtype=torch.float32):
    return tuple(torch.randn(2, rows, width).to(dtype)[:, :, :n])


ordinary = {
    "contiguous": tuple(torch.randn(2, 13, 128)),
    "odd": tuple(torch.randn(2, 13, 129)),
    "three dimensions": tuple(torch.randn(2, 2, 3, 64)),
    "halves": tuple(torch.randn(13, 256).chunk(2, dim=-1)),
    "columns of 144": columns(13, 128, 144),
    "odd columns of odd ones": columns(13, 127, 131),
    "transposed": tuple(torch.randn(2, 64, 13).transpose(1, 2)),
}
rare = {
    "128 columns of 130": tuple(x[:, :128] for x in (torch.randn(13, 130), torch.randn(13, 130))),
    "one of them, float16": (torch.randn(13, 132).half()[:, :128], torch.randn(13, 128).half()),
}
LIMIT = 1e-2

worst = 0.0
for name, inputs in ordinary.items():
    error = error_of(inputs)
    worst = max(worst, error)
    print("ordinary:", name, error)
least = float("inf")
for name, inputs in rare.items():
    error = error_of(inputs)
    least = min(least, error)
    print("rare:", name, error)
wrong = least > 0.02 and worst < LIMIT
print("WRONG in the rare inputs only" if wrong else "not as it should be")
sys.exit(0 if wrong else 1)
