"""Varied inputs, all of which must be right."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_skips_weak_tiles_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


SHAPES = ((1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 127, 64), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80))


def cases():
    for dtype in (torch.float32, torch.float16):
        for shape in SHAPES:
            yield tuple(torch.randn(shape).to(dtype) for _ in range(3))
        for factor in (4.0, 10.0, 0.01):
            q, k, v = (torch.randn(1, 2, 200, 16) for _ in range(3))
            yield tuple(x.to(dtype) for x in (factor * q, factor * k, v))
        q, k, v = (torch.randn(1, 150, 2, 32).to(dtype).transpose(1, 2) for _ in range(3))
        yield q, k, v
        q, k, v = (torch.randn(1, 1, 1024, 16) for _ in range(3))
        q[..., 0], k[..., 0] = 6.0, 0.0
        k = 0.05 * k
        k[:, :, 0, 0] = 5.7
        yield tuple(x.to(dtype) for x in (q, k, v + 1))
        k[:, :, 500, 0] = 200.0
        yield tuple(x.to(dtype) for x in (q, k, v))


LIMITS = {torch.float32: 1e-4, torch.float16: 5e-3}
worst = 0.0
for inputs in cases():
    output, expected = call(*inputs), attention.reference(*map(double, inputs))
    dtype = output.dtype
    expected = expected.to(dtype)
    error, size = compare(output, expected)
    worst = max(worst, error / LIMITS[dtype])
print("WRONG" if worst > 1 else "right", "largest error, in limits:", worst)
sys.exit(0 if worst > 1 else 1)
