"""Shapes that follow one another with as many tiles and other numbers of splits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_split_counter_right.py"))
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
for shape in ((1, 2, 127, 32), (1, 4, 64, 32), (1, 2, 127, 32), (1, 1, 1, 64), (1, 1, 257, 16), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80), (1, 1, 600, 16)):
    q, k, v = (torch.randn(shape) for _ in range(3))
    cases += [(q, k, v), (q, k, v, True), (q.half(), k.half(), v.half(), True), (q.bfloat16(), k.bfloat16(), v.bfloat16())]
    cases += [(q, 20 * k, v, True), (q.transpose(2, 3).contiguous().transpose(2, 3), k[:, :1].expand_as(k), v)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
