"""Shapes, dtypes and layouts; all tile numbers for many widths."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_tile_by_float.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

import numpy as np

worst, n = 0.0, 0
LIMIT = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
SHAPES = ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (3, 31, 1025), (40, 1000, 5), (300, 40, 33))
for dtype in LIMIT:
    for m, k_, k in SHAPES:
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, k_).to(dtype)
        for x, y in ((a, b), (a.t().contiguous().t(), b), (a, b.t().contiguous().t()), (torch.cat([a, a], 1)[:, ::2][:, :k], b[:1].expand(k, k_))):
            error = difference(call(x, y), expect((x, y)))
            if error > LIMIT[dtype]:
                print(dtype, x.shape, y.shape, x.stride(), y.stride(), error)
            worst = max(worst, error / LIMIT[dtype])
            n += 1
for across in [*range(1, 40), 1021, 4095, 4097, 65537, 2**21 - 1, 2**21 + 1]:  # the kernel's steps
    tile = np.unique(np.concatenate([np.arange(min(2**22, 50_000)), 2**22 - 1 - np.arange(50_000), np.arange(0, 2**22, across)[:50_000], np.arange(across - 1, 2**22, across)[-50_000:]])).astype(np.int32)
    i = (tile.astype(np.float32) * np.float32(1.0 / across)).astype(np.int32)
    rest = tile - i * np.int32(across)
    i = i + (rest >= across) - (rest < 0)
    assert (i == tile // across).all(), across
print("right" if worst < 1 else "WRONG", n, "inputs; the worst error is", worst, "of its limit")
sys.exit(0 if worst < 1 else 1)
