"""Shapes, dtypes and views, the two alike and unlike."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_equal_dense_strides_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (100, 1), (40, 40)):
    x, y = torch.randn(shape), torch.randn(shape)
    cases += [(x, y), (x, y, -2.0), (x.half(), y.half(), 0.1), (x.bfloat16(), y.bfloat16())]
for view in (
    lambda x: x[:, :50], lambda x: x[::2], lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[3:], lambda x: x[:, :1].expand(33, 7),
    lambda x: x.t()[:20], lambda x: x[:, 5], lambda x: x.view(3, 11, 64).permute(2, 0, 1), lambda x: x.view(3, 11, 64)[:, :5],
    lambda x: x.view(3, 11, 64).transpose(0, 1)[:, :1], lambda x: x.flatten().unfold(0, 8, 4), lambda x: x.flatten().unfold(0, 8, 8),
    lambda x: x.flatten()[:2000].as_strided((2, 8, 4), (15, 2, 4)), lambda x: x[:1, :50], lambda x: x[None, :, None, :60],
):
    x, y = torch.randn(33, 64), torch.randn(33, 64)
    cases += [(view(x), view(y), 0.5), (view(x), view(y).contiguous()), (view(x).contiguous(), view(y)), (view(x.half()), view(y.half()))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    limits = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
    limit = max(limits.get(x.dtype, 1e-5) for x in inputs if torch.is_tensor(x))
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / limit)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
