"""Shapes, views, dtypes, infinities and NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_compensated_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (127, 129), (1000, 1))]
cases += [(torch.randn(33, 600).to(dtype),) for dtype in (torch.float16, torch.bfloat16)]
cases += [(torch.randn(1300, 5).t(),), (torch.randn(5, 1, 700).expand(5, 3, 700),), (torch.randn(7, 2600)[:, ::2],)]
for values in ([float("inf")], [-float("inf")], [float("nan")], [float("inf"), -float("inf")], [float("inf"), float("inf")]):
    x = torch.randn(6, 1300)
    for i, value in enumerate(values):
        x[2, 5 + 512 * i] = x[4, 1290 - i] = value
    cases += [(x,)]
cases += [(1e4 + torch.randn(4, 3000),), (1e-20 * torch.randn(4, 3000).abs(),), (6e4 * torch.ones(3, 3000).half(),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
