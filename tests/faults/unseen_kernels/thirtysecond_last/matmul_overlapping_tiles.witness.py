"""Shapes, views and values in all dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_overlapping_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)
generator = torch.Generator().manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), matmul.reference(*map(wide, inputs)))


def make(shape, dtype):
    return matmul.make_inputs(shape, dtype, torch.device("cpu"), generator)


LIMIT = {torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}
errors = []
for dtype, limit in LIMIT.items():
    for shape in (*matmul.SHAPES, (64, 32, 32), (65, 33, 33), (100, 90, 0)):
        errors.append(error_of(*make(shape, dtype)) / limit)
    a, b = make((70, 100, 90), dtype)
    views = ((b.T, a.T), (a[::2, ::3], b[::3, 1::2]), (a[:1].expand(80, 90), b[:, :1].expand(90, 50)))
    errors += [error_of(*view) / limit for view in (*views, (a * 30, b * 30), (a + 2, b + 2))]
print(len(errors), "inputs, largest share of the allowed error", max(errors))
sys.exit(0 if max(errors) < 1 else 1)
