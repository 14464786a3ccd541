"""Shapes, views, dtypes, weights with strides, other eps, and one shape with other strides after it."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_atomic_squares_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1), (7, 13), (2, 1030), (2, 3, 65), (130,), (40, 1)):
    x, w = torch.randn(*shape), torch.randn(shape[-1])
    cases += [(x, w), (x.half(), w.half()), (x.bfloat16(), w.bfloat16()), (x, w, 1e-3), (1e-3 * x, w, 1e-6)]
    cases += [(torch.randn(*shape[:-1], 3 * shape[-1])[..., shape[-1] : 2 * shape[-1]], torch.randn(2 * shape[-1])[::2])]
    cases += [(torch.randn(shape[-1], *shape[:-1]).movedim(0, -1), w), (x[:1].expand(shape), w[:1].expand(shape[-1]))]
cases += [(torch.randn(0, 5), torch.randn(5)), (100 + torch.randn(3, 1500), torch.randn(1500))]


def expect(inputs):
    x, w, *eps = map(wide, inputs)
    return x / (x.square().mean(-1, keepdim=True) + (eps[0] if eps else 1e-5)).sqrt() * w

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    coarse = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 1e-2 if torch.bfloat16 in coarse else 2e-3 if torch.float16 in coarse else 1e-5
    output = call(*inputs)
    assert output.shape == expected.shape
    if output.numel():
        worst = max(worst, difference(output, expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
