"""Permuted, expanded, sliced and offset views, alone and in pairs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_storage_order_right.py"))
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

cases = []
for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (33, 1), (4, 5, 6, 7)):
    x, y = torch.randn(shape), torch.randn(shape)
    cases += [(x, y), (x.half(), y.half()), (x.bfloat16(), y.bfloat16()), (x, x), (1e20 * x, 1e-20 * y)]
    last = x.dim() - 1
    cases += [(x.transpose(0, last), y.transpose(0, last)), (x.transpose(0, last), torch.randn(x.transpose(0, last).shape))]
    cases += [(x[..., :1].expand(shape), y[..., :1].expand(shape)), (x[..., ::2], y[..., ::2])]
x = torch.randn(6, 6)
cases += [(x, x.t()), (x.t(), x.t()), (x[2:], x[:4]), (x.t()[1:], x.t()[:5]), (x[:, 1:], x[:, :5])]
cases += [(torch.randn(2, 3, 4).permute(1, 2, 0), torch.randn(2, 3, 4).permute(1, 2, 0))]
cases += [(torch.randn(40).as_strided((3, 2), (2, 5)), torch.randn(40).as_strided((3, 2), (2, 5)))]
cases += [(torch.randn(2, 3, 5, 4).to(memory_format=torch.channels_last),) * 2]

allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    for _ in range(2):
        output = call(*inputs)
        assert output.shape == expected.shape and output.dtype == inputs[0].dtype
        worst = max(worst, difference(output, expected) / allowed[output.dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
