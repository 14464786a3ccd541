"""Shapes, views, dtypes, scales, peaks, infinities and NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_skip_low_blocks_right.py"))
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

shapes = ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (64, 128), (33, 257), (100, 1))
cases = [(torch.randn(s).to(t),) for s in shapes for t in (torch.float32, torch.float16, torch.bfloat16)]
cases += [(scale * torch.randn(3, 5000),) for scale in (1e-3, 10.0, 100.0, 1e4)]
for peak in (7.0, 9.5, 20.0, 39.0, 41.0, 100.0):
    for place in (0, 5, 2000, 4095):
        x = torch.zeros(2, 4096)
        x[:, place] = peak
        cases += [(x,)]
for first, last in ((0, 1024), (1024, 2048), (3072, 4096), (0, 4096), (0, 4095)):
    x = torch.randn(2, 4096)
    x[0, first:last] = -float("inf")
    cases += [(x,)]
for value in (float("nan"), float("inf")):
    for place in (0, 1024, 4095):
        x = torch.randn(2, 4096)
        x[:, :1024] += 90
        x[0, place] = value
        cases += [(x,)]
cases += [(torch.randn(64, 33).t(),), (torch.randn(8, 1, 40).expand(8, 3, 40),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / half)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
