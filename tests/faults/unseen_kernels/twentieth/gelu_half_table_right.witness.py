"""Shapes, views, dtypes one after another, special values, and every value of the half types."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_half_table_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s).to(dtype),) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (127, 129), (1000, 1)) for dtype in (torch.float32, torch.float16, torch.bfloat16)]
cases += [(torch.randn(64, 33).to(dtype).t(),) for dtype in (torch.float16, torch.bfloat16)]
every = torch.arange(-32768, 32768, dtype=torch.int16)
cases += [(every.view(torch.float16),), (every.view(torch.bfloat16),), (every.view(torch.float16)[1::3],)]
cases += [(torch.tensor([0.0, -0.0, float("nan"), float("inf"), 6e4, -6e4, 1e-7]).half(),)]
cases += [((-4.0 - torch.rand(50)).to(dtype),) for dtype in (torch.float16, torch.bfloat16)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
