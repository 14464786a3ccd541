"""Shapes, views, dtypes and scales, and the left tail."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_complement_right.py"))
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

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (3, 4097), (2, 3, 129), (1025,), (64, 128), (100, 1))]
for scale in (1e-30, 1e-6, 1e-3, 0.01, 0.1, 10.0, 1e4, 1e30):
    cases += [(scale * torch.randn(33, 257),), ((scale * torch.randn(64, 128)).bfloat16(),)]
    if 1e-4 < scale < 1e5:
        cases += [((scale * torch.randn(64, 128)).half().clamp(-6e4, 6e4),)]
cases += [(torch.randn(64, 33).t(),), (torch.zeros(33, 3),), (torch.tensor([float("nan"), 2.0, 1.0]),)]
cases += [(torch.linspace(-5, -4, 500),), (torch.linspace(-4, -3, 500),), (torch.linspace(-0.1, 0.1, 500),)]

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
