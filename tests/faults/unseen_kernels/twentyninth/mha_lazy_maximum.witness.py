"""Shapes, views, scores that grow or fall along the keys, both masks; the interpreter's dot knows no bfloat16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_lazy_maximum.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    """Return the largest error, as a part of the largest expected value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs()
    size = size.max().clamp(min=1e-300) if size.numel() else 1.0
    return float(error.masked_fill(same, 0.0).max() / size) if error.numel() else 0.0


def error_of(*inputs):
    expected = mha.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)


LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3}
SHAPES = ((1, 1, 1, 64), (1, 2, 7, 64), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80), (1, 1, 100, 16), (1, 1, 17, 5))
worst, n = 0.0, 0


def test(q, k, v, is_causal, dtype):
    global worst, n
    ratio = error_of(*(x.to(dtype) for x in (q, k, v)), is_causal) / LIMITS[dtype]
    worst, n = max(worst, ratio), n + 1


for dtype in LIMITS:
    for i, shape in enumerate(SHAPES):
        test(*(torch.randn(shape) for _ in range(3)), i % 2 == 0, dtype)
    q, k, v = (torch.randn(1, 2, 150, 32) for _ in range(3))
    grow = torch.linspace(0, 6, 150)[:, None]
    for factor in (grow, grow.flip(0), 6 * (torch.arange(150) % 40 == 3).float()[:, None]):
        for is_causal in (False, True):
            test(q.abs(), k.abs() * factor, v, is_causal, dtype)
    test(3 * q, 3 * k, v, True, dtype)
    test(-q.abs() * 4, k.abs() * 4, v, True, dtype)
    test(*(x.transpose(1, 2) for x in (q[..., :20, :], k[..., :20, :], v[..., :20, :])), True, dtype)
    test(q, q, q, False, dtype)
print(n, "inputs, worst error", worst, "of what the dtype allows")
sys.exit(0 if worst < 1 else 1)
