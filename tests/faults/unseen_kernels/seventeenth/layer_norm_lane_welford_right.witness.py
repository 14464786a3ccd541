"""Shapes, dtypes, views, scales and means far from zero."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_lane_welford_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (20, 64), (33, 1), (5, 65)):
    x, w, b = torch.randn(shape), torch.randn(shape[-1]), torch.randn(shape[-1])
    cases += [(x, w, b), (x.half(), w.half(), b.half()), (x.bfloat16(), w.bfloat16(), b.bfloat16())]
    cases += [(1e4 * x, w, b), (1e-4 * x, w, b), (x + 30.0, w, b), ((x + 100).half(), w.half(), b.half())]
x, w, b = torch.randn(40, 70), torch.randn(40, 2)[:, 0], torch.randn(40)
cases += [(x.t(), w, b), (torch.randn(9, 200)[:, ::5], w, b, 1e-2), (torch.full((4, 40), 3.0), w, b)]

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
