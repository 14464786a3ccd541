"""Rows of one to many parts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_last_program.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = mean.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((1, 1), (7, 13), (3, 2048), (3, 2049), (2, 3, 4097), (1, 70000), (40, 300), (1025,)):
        cases.append(((torch.randn(shape) + 0.5).to(dtype),))
    cases.append((torch.randn(300, 5).to(dtype).T,))
x = torch.randn(4, 9000)
x[0, 8999], x[1, 3], x[2, 5000] = float("nan"), float("inf"), -float("inf")
cases += [(x,), (x,), (torch.randn(540, 2100),)]

worst = 0.0
for inputs in cases:
    error = difference(inputs)
    limit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[inputs[0].dtype]
    if not error <= limit:
        print("WRONG", inputs[0].shape, inputs[0].stride(), inputs[0].dtype, error)
        sys.exit(1)
    worst = max(worst, error)
print("right,", len(cases), "inputs, worst error", worst)
