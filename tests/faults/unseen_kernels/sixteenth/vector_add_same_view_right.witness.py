"""The same tensor, its transposes, slices and expansions, and several factors."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_same_view_right.py"))
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
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for alpha in (1.0, -1.0, 0.0, 2, -2.5, 1e-3):
        x = torch.randn(33, 33).to(dtype)
        cases += [(x, x, alpha), (x, x.t(), alpha), (x.t(), x, alpha), (x.t(), x.t(), alpha)]
        cases += [(x[:1].expand(33, 33), x[:, :1].expand(33, 33), alpha), (x[:16, :16], x.flatten()[:256].view(16, 16), alpha)]
        cases += [(x[::2, :17], x[:17, ::2], alpha), (x[:, :1], x[:, :1], alpha), (x[:1], x[:1], alpha)]
x = torch.randn(2, 3, 129)
cases += [(x, x, 1.5), (x, torch.randn(2, 3, 129), 1.5), (x[..., 0], x[..., 1], 1.5), (x[0, 0, 0], x[0, 0, 0], 3.0)]
x = x.masked_fill(x > 2, float("inf"))
cases += [(x, x, -2.0), (x, x, 0.0), (x, x, -1.0)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
