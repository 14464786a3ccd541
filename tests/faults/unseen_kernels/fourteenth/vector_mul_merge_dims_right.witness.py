"""Pairs of contiguous, sliced, transposed, expanded and stepped inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_merge_dims_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ALLOWED = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}

cases = [(torch.randn(s), torch.randn(s)) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (1000, 1), (2, 3, 4, 5, 6))]
plain, cube = torch.randn(33, 48), torch.randn(4, 6, 10)
views = [plain, torch.randn(33, 64)[:, :48], torch.randn(48, 33).t(), torch.randn(48).expand(33, 48)]
views += [torch.randn(33, 1).expand(33, 48), torch.randn(66, 96)[::2, ::2], torch.randn(1, 1).expand(33, 48)]
cubes = [cube, torch.randn(10, 6, 4).transpose(0, 2), torch.randn(4, 10, 6).transpose(1, 2), torch.randn(6, 4, 10).transpose(0, 1)]
cubes += [torch.randn(4, 12, 10)[:, :6], torch.randn(4, 1, 10).expand(4, 6, 10), torch.randn(1, 6, 10).expand(4, 6, 10)]
cubes += [torch.randn(4, 6, 20)[:, :, ::2], torch.randn(4, 6, 1).expand(4, 6, 10)]
for group in (views, cubes):
    cases += [(a, b) for a in group for b in group]
cases += [(a.half(), b.half()) for a in views[:3] for b in views[:3]] + [(plain.bfloat16(), views[2].bfloat16())]
odd = torch.randn(2, 5, 3, 4, 6).permute(4, 2, 0, 3, 1)
cases += [(odd, torch.randn(6, 3, 2, 4, 5)), (odd, odd), (torch.randn(()), torch.randn(()))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtype = next(x.dtype for x in inputs if torch.is_tensor(x) and x.dtype in ALLOWED)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / ALLOWED[dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
