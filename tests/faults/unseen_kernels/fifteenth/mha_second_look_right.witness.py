"""Shapes, views, dtypes, both masks, a key that stands out."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_second_look_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mha.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for b, h, s, d in ((1, 1, 1, 64), (1, 1, 7, 64), (2, 3, 65, 32), (1, 2, 33, 80), (1, 1, 129, 16)):
    q, k, v = (torch.randn(b, h, s, d) for _ in range(3))
    cases += [(q, k, v, True), (q, k, v, False), (q.half(), k.half(), v.half(), True)]
    cases += [(q.bfloat16(), k.bfloat16(), v.bfloat16(), False)]
    cases += [(torch.randn(b, s, h, d).transpose(1, 2), torch.randn(b, h, d, s).transpose(2, 3), v[:, :1].expand_as(v), True)]
    cases += [tuple(torch.randn(b, s, 3 * h, d).transpose(1, 2).chunk(3, dim=1))]
k = torch.full((1, 1, 200, 16), -2.0)
k[:, :, 150] = 3
cases += [(torch.ones(1, 1, 200, 16), k, torch.randn(1, 1, 200, 16), False), (8 * q, 8 * q, v, True)]

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
