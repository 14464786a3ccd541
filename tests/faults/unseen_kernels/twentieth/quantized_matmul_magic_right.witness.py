"""Shapes, dtypes, views of each tensor, every value of int8."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_magic_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return quantized_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def weights(*shape):
    return torch.randint(-128, 128, shape, dtype=torch.int8)


cases = []
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (65, 40, 129), (3, 31, 300), (1, 200, 65)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        if dtype != torch.bfloat16 or k < 200:
            cases += [(torch.randn(m, k).to(dtype), weights(n, k), (0.01 * torch.rand(n)).to(dtype))]
every = torch.arange(-128, 128).to(torch.int8)
cases += [(torch.ones(2, 1), every[:, None], torch.ones(256)), (torch.ones(20, 256), every[None].repeat(3, 1), torch.ones(3))]
cases += [(torch.randn(2, 64), weights(64, 33).t(), torch.rand(66)[::2]), (torch.randn(64, 20).t(), weights(33, 128)[:, ::2], torch.rand(1).expand(33))]
cases += [(torch.full((4, 40), 100.0), torch.full((8, 40), -128, dtype=torch.int8), torch.full((8,), 1e-3))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
