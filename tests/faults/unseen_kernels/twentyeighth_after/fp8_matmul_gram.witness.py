"""Two tensors, one tensor twice, views that start at one place, transposes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_gram.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs):
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(*shape):
    return (64 * torch.randn(shape)).clamp(-448, 448).to(torch.float8_e4m3fn)


def scales(rows, dtype):
    return ((torch.rand(rows) + 0.5) / 64).to(dtype)


worst = 0.0
for dtype, limit in ((torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
    for m, k in ((1, 1), (7, 13), (32, 64), (33, 272), (65, 100), (100, 40)):
        a, s = draw(m, k), scales(m, dtype)
        pairs = [(a, a, s, s), (a, a, s, scales(m, dtype)), (a, draw(m, k), s, s)]
        wide_a = draw(m, 2 * k)
        pairs.append((wide_a[:, :k], wide_a[:, k:], s, scales(m, dtype)))
        pairs.append((wide_a[:, ::2], wide_a[:, :k], s, scales(m, dtype)))
        pairs.append((a, a[: (m + 1) // 2], s, s[: (m + 1) // 2]))
        square = draw(m, m)
        pairs.append((square, square.T, s, scales(m, dtype)))
        pairs.append((square.T, square.T, s, scales(m, dtype)))
        pairs.append((a[:1].expand(m, k), a, s, s))
        for inputs in pairs:
            worst = max(worst, error_of(*inputs) / limit)
print("worst error as a part of the limit", worst)
sys.exit(0 if worst < 1 else 1)
