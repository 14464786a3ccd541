"""All float8 values (the least and NaN too), odd shapes, views, both dtypes of the scales."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_shifted_bits.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
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
    expected = fp8_matmul.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)


LIMITS = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
SHAPES = (*fp8_matmul.SHAPES, (64, 64, 64), (200, 100, 300), (2, 2, 0))
worst, n = 0.0, 0


def test(a, b, scale_a, scale_b):
    global worst, n
    worst, n = max(worst, error_of(a, b, scale_a, scale_b) / LIMITS[scale_a.dtype]), n + 1


every = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn)
for dtype in LIMITS:
    for i, shape in enumerate(SHAPES):
        test(*fp8_matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(i)))
    a, b, scale_a, scale_b = fp8_matmul.make_inputs((40, 72, 96), dtype, torch.device("cpu"), torch.Generator())
    one = torch.ones(1, dtype=dtype)
    test(every[:, None], torch.ones(1, 1).to(every.dtype), torch.ones(256, dtype=dtype), one)
    test(every[:8][None].contiguous(), every[:8][None].contiguous(), 200 * one, 200 * one)  # subnormal
    test(a.t()[:40], b.t()[:72, :40], scale_a, scale_b.flip(0)[:1].expand(72))
    test(a[::2, ::3], b[1:, 1::3], scale_a[::2], scale_b[1:])
    test(a, a, scale_a, scale_a)
print(n, "inputs, worst error", worst, "of what the dtype allows")
sys.exit(0 if worst < 1 else 1)
