"""Shapes and views: transposed, permuted, expanded, sliced, of size 1, and pairs of them."""

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

cases = [(torch.randn(s), torch.randn(s)) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (127, 129), (1000, 1))]
cases += [(torch.randn(33, 65).t(), torch.randn(33, 65).t()), (torch.randn(33, 65).t(), torch.randn(65, 33))]
cases += [(torch.randn(2, 5, 7, 3).permute(0, 3, 1, 2).half(), torch.randn(2, 5, 7, 3).permute(0, 3, 1, 2).half())]
cases += [(torch.randn(8, 1, 40).expand(8, 3, 40), torch.randn(8, 1, 40).expand(8, 3, 40))]
cases += [(torch.randn(9, 80)[:, ::2], torch.randn(9, 80)[:, 1::2]), (torch.randn(20, 30)[3:9, 4:], torch.randn(20, 30)[3:9, 4:])]
square = torch.randn(40, 40)
cases += [(square, square.t()), (square.t(), square.t()), (torch.randn(1).expand(50), torch.randn(1).expand(50))]
cases += [(torch.randn(5, 1, 7).transpose(0, 2), torch.randn(5, 1, 7).transpose(0, 2)), (torch.tensor(2.0), torch.tensor(3.0))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
