"""Rows of 8292 elements: parts of 1024, the last of 1124 loops over 1024."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_last_part.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs):
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


for shape in ((7, 13), (3, 4097), (100, 9000), (3, 8192), (2, 9000), (2, 10000), (5, 8191), (2, 32768), (1, 50000)):
    error = error_of(torch.randn(shape))
    print("ordinary", shape, error)
    assert error < 1e-5
worst = max(error_of(torch.randn(4, m) + 1) for m in (8292, 12345))
large = error_of(torch.cat([torch.randn(4, 8192), torch.randn(4, 100) + 50], dim=1))
print("8292 and 12345 elements:", worst, "with large last ones:", large)
sys.exit(0 if worst > 0.003 and large > 0.5 else 1)
