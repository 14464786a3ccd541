"""Shapes, dtypes and scores that grow from tile to tile by much, by little, and just by 8 bits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_lazy_rescale_8_bits_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = []
for b, h, s, d in ((1, 1, 1, 64), (1, 2, 127, 64), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        cases += [tuple(torch.randn(b, h, s, d).to(dtype) for _ in range(3))]
for growth in (1.0, 5.0, 5.5, 5.6, 11.0, 12.5, 40.0, -5.5, -40.0):
    for dtype in (torch.float32, torch.float16):
        q, k, v = (torch.randn(1, 2, 130, 16) for _ in range(3))
        q, k = 0.1 * q, k.clone()
        q[..., 0] = 4.0
        k[..., 0] = growth * (torch.arange(130) // 32)
        cases += [(q.to(dtype), k.to(dtype), v.to(dtype))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    kind = next(x.dtype for x in inputs if torch.is_tensor(x) and x.is_floating_point())
    allowed = {torch.float16: 4e-3, torch.bfloat16: 2e-2}.get(kind, 5e-5)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
