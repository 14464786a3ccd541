"""Every eps from 0 to 100, shapes, scales, dtypes, views, NaN and rows of zeros."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_eps_times_width_right.py"))
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
for shape in ((1, 1), (7, 13), (3, 4097), (2, 3, 129), (1025,), (100, 1), (16, 256)):
    for eps in (0.0, 1e-12, 1e-6, 1e-5, 1e-3, 0.5, 100.0):
        x, weight = torch.randn(shape), torch.randn(shape[-1])
        cases += [(x, weight, eps), ((0.05 * x).half(), weight.half(), eps), ((0.05 * x).bfloat16(), weight.bfloat16(), eps)]
        cases += [(1e-4 * x, weight, eps), (1e4 * x, weight, eps)]
cases += [(torch.randn(33, 20).t(), torch.randn(33)), (torch.zeros(4, 20), torch.ones(20), 0.0), (torch.zeros(4, 20), torch.ones(20))]
x = torch.randn(5, 40)
x[2, 3] = float("nan")
cases += [(x, torch.ones(40), 1e-6)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
