"""Shapes, dtypes, views, small scales, and each pair of the 256 bytes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_bits_through_half_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() and x.dtype != torch.float8_e4m3fn else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def quantise(m, n, k, size_a, size_b, dtype):
    """Return matrices of a given size, each row divided by its largest value over 448."""
    pairs = []
    for rows, size in ((m, size_a), (n, size_b)):
        x = size * torch.randn(rows, k)
        scale = (x.abs().amax(1) / 448).clamp(min=1e-7).to(dtype)
        pairs += [((x / scale.float()[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale)]
    (a, scale_a), (b, scale_b) = pairs
    return a, b, scale_a, scale_b


cases = [quantise(*shape, a, b, dtype) for shape in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (65, 127, 129), (3, 31, 1025), (33, 64, 272)) for a, b in ((1, 1), (0.03, 0.02)) for dtype in (torch.float16, torch.bfloat16)]
every = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn)
every = every[~every.float().isnan()][:, None].contiguous()
cases += [(every, every, torch.full((254,), 0.1, dtype=dtype), torch.full((254,), 0.1, dtype=dtype)) for dtype in (torch.float16, torch.bfloat16)]
subnormal = (0.01 * torch.randn(40, 70)).clamp(-0.0136, 0.0136).to(torch.float8_e4m3fn)
cases += [(subnormal, subnormal, torch.ones(40, dtype=torch.float16), torch.ones(40, dtype=torch.float16))]
cases += [(torch.randn(70, 40).to(torch.float8_e4m3fn).t(), subnormal, torch.ones(40, dtype=torch.float16), torch.ones(40, dtype=torch.float16))]
nan = torch.randn(20, 70).to(torch.float8_e4m3fn)
nan.view(torch.uint8)[3, 5], nan.view(torch.uint8)[4, 5] = 0x7F, 0xFF
cases += [(nan, subnormal, torch.ones(20, dtype=torch.float16), torch.ones(40, dtype=torch.float16))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    limits = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
    limit = max(limits.get(x.dtype, 1e-5) for x in inputs if torch.is_tensor(x))
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / limit)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
