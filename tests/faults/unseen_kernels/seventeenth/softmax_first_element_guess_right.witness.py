"""Shapes, dtypes, scales, first elements that are far off, infinities, NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_first_element_guess_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 3), (33, 1)):
    x = torch.randn(shape)
    cases += [(x,), (x.half(),), (x.bfloat16(),), (30 * x,), (1000 * x,), (x - 5e3,), ((x * 1e4).half(),)]
for first in (-float("inf"), -1e30, -500.0, -88.5, -69.0, -60.0, 60.0, 90.0, 500.0, 1e30, float("inf"), float("nan")):
    x = torch.randn(4, 300)
    x[1:, 0] = first
    x[2, 7] = -float("inf")
    cases += [(x,)]
cases += [(torch.randn(40, 30).t(),), (torch.randn(5, 1).expand(5, 9),), (torch.full((2, 5), -float("inf")),)]

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
