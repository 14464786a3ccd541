"""Varied inputs, all of which must be right."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_magic_number_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


SHAPES = ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (3, 31, 1025), (16, 64, 128))


def cases():
    for dtype in (torch.float32, torch.float16):
        for m, n, k in SHAPES:
            weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
            yield torch.randn(m, k).to(dtype), weight, ((torch.rand(n) + 0.5) / 127).to(dtype)
        x, weight = torch.randn(40, 48).to(dtype), torch.randint(-128, 128, (48, 40), dtype=torch.int8)
        scale = ((torch.rand(80) + 0.5) / 127).to(dtype)
        yield x.T, weight.T[:, :40], scale[:40]
        yield x, weight.T.contiguous(), scale[::2]
        yield x[::2], weight.T, scale[:40]
        yield x, torch.full((40, 48), -128, dtype=torch.int8), scale[:1].expand(40)
        yield x, torch.full((40, 48), 127, dtype=torch.int8), scale[:40]
        yield 30 * x, weight.T, scale[:40]


LIMITS = {torch.float32: 1e-4, torch.float16: 5e-3}
worst = 0.0
for inputs in cases():
    output, expected = call(*inputs), quantized_matmul.reference(*map(double, inputs))
    dtype = output.dtype
    expected = expected.to(dtype)
    error, size = compare(output, expected)
    worst = max(worst, error / LIMITS[dtype])
print("WRONG" if worst > 1 else "right", "largest error, in limits:", worst)
sys.exit(0 if worst > 1 else 1)
