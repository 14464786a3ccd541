"""Calls with more and fewer rows in turn, and shapes, dtypes, epsilons and views."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_sums_take_turns_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for rows in (8, 2, 8, 1, 5, 3, 20, 1, 20, 7, 64, 2):
    cases += [(torch.randn(rows, 8192 if rows % 2 == 0 else 8500), torch.randn(8192 if rows % 2 == 0 else 8500))]
for rows in (4, 1, 4):
    cases += [(torch.randn(rows, 9001).half(), torch.randn(9001).half(), 1e-6), (torch.randn(9001, rows).t(), torch.randn(9001), 1e-3)]
for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (100, 1), (2, 3, 8192)):
    x, weight = torch.randn(shape), torch.randn(shape[-1])
    cases += [(x, weight), (x.half(), weight.half(), 1e-3), (x.bfloat16(), weight.bfloat16()), (1e-3 * x, weight, 1e-6)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    limits = {torch.float16: 4e-3, torch.bfloat16: 2e-2}
    limit = max(limits.get(x.dtype, 1e-5) for x in inputs if torch.is_tensor(x))
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / limit)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
