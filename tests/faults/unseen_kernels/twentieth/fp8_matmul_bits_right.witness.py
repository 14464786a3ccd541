"""Shapes, transposed and sliced operands, subnormals, NaN and every value of float8."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_bits_right.py"))
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

f8 = torch.float8_e4m3fn
cases = []
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (65, 40, 129), (3, 31, 300)):
    for dtype in (torch.float16, torch.bfloat16):
        a, b = torch.randn(m, k).to(f8), torch.randn(n, k).to(f8)
        cases += [(a, b, (0.1 * torch.rand(m)).to(dtype), torch.rand(n).to(dtype))]
every = torch.arange(256).to(torch.uint8).view(f8)
cases += [(every[:, None], torch.ones(3, 1).to(f8), torch.ones(256).half(), torch.ones(3).half())]
cases += [(torch.randn(64, 33).to(f8).t(), torch.randn(64, 20).to(f8).t(), torch.rand(66).half()[::2], torch.rand(20).half())]
cases += [((0.01 * torch.randn(33, 64)).to(f8), (0.01 * torch.randn(20, 64)).to(f8), torch.rand(33).half(), torch.rand(20).half())]
cases += [((300 * torch.randn(33, 64)).clamp(-448, 448).to(f8), torch.randn(20, 64).to(f8), (2e-4 * torch.rand(33)).bfloat16(), (2e-4 * torch.rand(20)).bfloat16())]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
