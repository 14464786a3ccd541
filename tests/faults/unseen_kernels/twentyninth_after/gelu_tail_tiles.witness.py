"""Tails on either side, in whole tiles and in mixed ones; values that are not finite."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_tail_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = gelu.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for n in (1, 13, 256, 1000, 4097):
        x = torch.randn(n).to(dtype)
        cases += [(x,), (x.abs() + 8,), (-x.abs() - 41,), (20 * x,), (x + 7,), (x - 40,)]
    cases.append((torch.randn(33, 40).to(dtype).T,))
x = torch.full((2048,), 9.0)
x[300], x[600] = float("nan"), float("inf")
cases += [(x,), (-x - 50,)]

worst = 0.0
for inputs in cases:
    error = difference(inputs)
    limit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[inputs[0].dtype]
    if not error <= limit:
        print("WRONG", inputs[0].shape, inputs[0].stride(), inputs[0].dtype, error)
        sys.exit(1)
    worst = max(worst, error)
print("right,", len(cases), "inputs, worst error", worst)
