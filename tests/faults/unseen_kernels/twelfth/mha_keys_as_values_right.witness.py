"""Shapes, views of one tensor and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_keys_as_values_right.py"))
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
for shape in ((1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 127, 32), (2, 3, 65, 32), (1, 2, 33, 80)):
    for causal in (False, True):
        q, k, v = torch.randn(3, *shape)
        cases += [(q, k, v, causal), (q, k, k, causal)]
        cases += [(q, k, k[:, :1].expand_as(k), causal), (q.half(), k.half(), v.half(), causal)]
k = torch.randn(2, 4, 32, 32)
cases += [(k, k, k.transpose(2, 3), True), (k, k.transpose(0, 1)[:, :2], k[:2].transpose(0, 1)[:, :2], False)][:1]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
