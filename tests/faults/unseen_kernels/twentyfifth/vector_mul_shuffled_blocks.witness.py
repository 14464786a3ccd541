"""Sizes around the blocks' ends, numbers of blocks that 7919 divides, layouts, NaN and infinity."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_shuffled_blocks.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


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


assert all(
    sorted(i * module.coprime_step(n) % n for i in range(n)) == list(range(n))
    for n in (1, 2, 3, 7919, 7920, 2 * 7919, 3 * 7919, 12345)
)
worst, count = 0.0, 0
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    limit = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    cases = [(torch.randn(s), torch.randn(s)) for s in (1, 2, 255, 256, 257, 1025, 65536, 65537, 70000)]
    cases += [(torch.randn(7, 13), torch.randn(13, 7).t()), (torch.randn(40, 60)[:, ::2], torch.randn(1, 30).expand(40, 30))]
    x = torch.randn(50, 50)
    cases += [(x, x), (x, x.t()), (torch.tensor([0.0, float("inf"), float("nan"), -0.0]), torch.tensor([float("inf"), -1.0, 1.0, 1.0]))]
    for a, b in cases:
        a, b = a.to(dtype), b.to(dtype)
        worst, count = max(worst, error_of(a, b) / limit), count + 1
assert call(torch.zeros(0), torch.zeros(0)).shape == (0,)
print("right" if worst <= 1 else "WRONG", count, "inputs, the largest error", worst, "of its limit")
sys.exit(0 if worst <= 1 else 1)
