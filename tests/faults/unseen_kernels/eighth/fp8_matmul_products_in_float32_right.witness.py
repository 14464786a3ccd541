"""Varied inputs, all of which must be right."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_products_in_float32_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


SHAPES = ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (3, 31, 1025), (8, 64, 272), (9, 64, 272))
FLOAT8 = torch.float8_e4m3fn


def cases():
    for m, n, k in SHAPES:
        for spread in (64.0, 200.0):
            a, b = ((spread * torch.randn(r, k)).clamp(-448, 448).to(FLOAT8) for r in (m, n))
            yield a, b, ((torch.rand(m) + 0.5) / 640).half(), ((torch.rand(n) + 0.5) / 640).half()
    for m in (2, 8, 20):
        ones = torch.full((m,), 1 / 448).half(), torch.full((30,), 1 / 448).half()
        yield torch.full((m, 40), 448.0).to(FLOAT8), torch.full((30, 40), -448.0).to(FLOAT8), *ones
        a, b = (64 * torch.randn(40, m)).to(FLOAT8).T, (64 * torch.randn(40, 60)).to(FLOAT8).T[::2]
        yield a, b, *ones


LIMITS = {torch.float32: 1e-4, torch.float16: 5e-3}
worst = 0.0
for inputs in cases():
    output, expected = call(*inputs), fp8_matmul.reference(*map(double, inputs))
    dtype = output.dtype
    expected = expected.to(dtype)
    error, size = compare(output, expected)
    worst = max(worst, error / LIMITS[dtype])
print("WRONG" if worst > 1 else "right", "largest error, in limits:", worst)
sys.exit(0 if worst > 1 else 1)
