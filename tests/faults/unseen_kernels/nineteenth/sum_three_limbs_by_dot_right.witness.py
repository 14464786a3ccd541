"""Shapes, dtypes, views, and scales over the whole range of float32."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_three_limbs_by_dot_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.rand(s) + 0.1,) for s in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (33, 257), (100, 1))]
for scale in (1e-36, 1e-30, 1e-20, 1e-9, 1e-6, 1e-4, 0.1, 1e3, 1e5, 1e10, 1e30, 1e35):
    cases += [(scale * (torch.rand(20, 300) + 0.1),)]
cases += [(torch.rand(64, 33).t(),), (torch.rand(8, 1, 40).expand(8, 3, 40),), (torch.rand(20, 300)[:, ::3],)]
cases += [(torch.rand(20, 300).half(),), (torch.rand(20, 300).bfloat16(),), ((1e-6 * torch.rand(20, 300)).bfloat16(),)]
cases += [(torch.full((5, 1), 3.4028234e38),), (torch.full((5, 1), -3.4028234e38),), (torch.randn(20, 300),)]
odd = torch.rand(20, 300)
odd[3, 5], odd[4, 6], odd[5, 7], odd[6, 8], odd[6, 9] = float("inf"), float("-inf"), float("nan"), float("inf"), float("-inf")
cases += [(odd,), (odd.half(),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    limits = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
    limit = max(limits.get(x.dtype, 1e-5) for x in inputs if torch.is_tensor(x))
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / limit)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
