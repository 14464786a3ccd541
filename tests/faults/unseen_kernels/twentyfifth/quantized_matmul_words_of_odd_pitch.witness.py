"""Weights in rows padded by 2: the pitch is 66, k is 64."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_words_of_odd_pitch.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return quantized_matmul.reference(*map(wide, inputs))


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


def drawn(m, n, k, dtype, pad=0):
    weight = torch.randint(-128, 128, (n + 2, k + pad), dtype=torch.int8)[1 : n + 1, :k]
    if not pad:
        weight = weight.clone()
    return torch.randn(m, k).to(dtype), weight, (torch.rand(n) / 64).to(dtype)


ordinary = max(
    error_of(*drawn(m, n, k, dtype, pad))
    for m, n, k, pad in ((5, 33, 64, 0), (17, 40, 260, 0), (3, 20, 63, 0), (4, 40, 64, 4), (4, 40, 63, 3))
    for dtype in (torch.float32, torch.float16)
)
x, weight, scale = drawn(5, 33, 64, torch.float32)
padded = torch.zeros(33, 66, dtype=torch.int8)
padded[:, :64] = weight
error = error_of(x, padded[:, :64], scale)
print("an ordinary input:", ordinary)
shows = ordinary < 0.002 and error > 0.02
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
