"""NaN of both signs, every float8, shapes, views, both dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_bits_to_half_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ALLOWED = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}

def draw(m, n, k, dtype=torch.float16):
    a, b = torch.randn(m, k).to(torch.float8_e4m3fn), torch.randn(n, k).to(torch.float8_e4m3fn)
    return a, b, (0.1 * torch.rand(m)).to(dtype), (0.1 * torch.rand(n)).to(dtype)


def with_nan(dtype=torch.float16):
    a, b, scale_a, scale_b = draw(9, 20, 64, dtype)
    a = a.float()
    a[4, 5] = float("nan")
    return a.to(torch.float8_e4m3fn), b, scale_a, scale_b


every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
cases = []
for dtype in (torch.float16, torch.bfloat16):
    cases += [with_nan(dtype)]
    cases += [draw(*s, dtype) for s in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (65, 127, 129), (3, 31, 257))]
    one = torch.ones(1, dtype=dtype)
    cases += [(every[:, None], torch.ones(1, 1).to(torch.float8_e4m3fn), one.expand(256), one)]
a, b, scale_a, scale_b = draw(24, 16, 40)
cases += [(a.t().contiguous().t(), b.t().contiguous().t(), torch.rand(24, 2).half()[:, 1], scale_b)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtype = next(x.dtype for x in inputs if torch.is_tensor(x) and x.dtype in ALLOWED)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / ALLOWED[dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
