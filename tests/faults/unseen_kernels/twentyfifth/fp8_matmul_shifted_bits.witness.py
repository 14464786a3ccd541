"""Every pattern of bits, shapes, layouts and dtypes."""

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


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


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


def drawn(m, n, k, dtype, spread=64.0):
    a, b = ((spread * torch.randn(r, k)).clamp(-448, 448).to(torch.float8_e4m3fn) for r in (m, n))
    return a, b, ((torch.rand(m) + 0.5) / spread).to(dtype), ((torch.rand(n) + 0.5) / spread).to(dtype)


worst, count = 0.0, 0
for dtype in (torch.float16, torch.bfloat16):
    limit = 2e-3 if dtype == torch.float16 else 1e-2
    cases = [drawn(*s, dtype) for s in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (65, 127, 129), (3, 31, 1025), (33, 64, 272))]
    cases += [drawn(20, 30, 70, dtype, s) for s in (0.01, 1.0, 400.0)]
    a, b, sa, sb = drawn(40, 50, 60, dtype)
    cases.append((a.t().contiguous().t(), b, sa, sb))
    cases.append((a[::2], b[1:], sa[::2], sb[1:]))
    cases.append((a, b, sa[:1].expand(40), sb))
    numbers = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn)
    finite = numbers[~numbers.float().isnan()]
    one = torch.ones(1, 1).to(torch.float8_e4m3fn)
    cases.append((finite[:, None], one, torch.ones(254).to(dtype), torch.ones(1).to(dtype)))
    cases.append((numbers[:, None], one, torch.ones(256).to(dtype), torch.ones(1).to(dtype)))
    for case in cases:
        expected = fp8_matmul.reference(case[0].double(), case[1].double(), case[2].double(), case[3].double())
        worst, count = max(worst, difference(call(*case), expected) / limit), count + 1
print("right" if worst <= 1 else "WRONG", count, "inputs, the largest error", worst, "of its limit")
sys.exit(0 if worst <= 1 else 1)
