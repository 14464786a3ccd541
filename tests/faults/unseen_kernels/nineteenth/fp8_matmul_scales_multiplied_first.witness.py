"""Weights of size 0.02 and activations of size 0.03, each row scaled to the range of float8, in float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_scales_multiplied_first.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() and x.dtype != torch.float8_e4m3fn else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def quantise(m, n, k, size_a, size_b, dtype):
    """Return matrices of a given size, each row divided by its largest value over 448."""
    pairs = []
    for rows, size in ((m, size_a), (n, size_b)):
        x = size * torch.randn(rows, k)
        scale = (x.abs().amax(1) / 448).clamp(min=1e-7).to(dtype)
        pairs += [((x / scale.float()[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale)]
    (a, scale_a), (b, scale_b) = pairs
    return a, b, scale_a, scale_b

inputs = quantise(32, 48, 64, 0.03, 0.02, torch.float16)

expected = expect(inputs)
error = difference(call(*inputs), expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
