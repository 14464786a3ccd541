"""Windows of every second sample, three samples apart."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_windows_dilated.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = sum.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


signal = torch.randn(3, 200)
ordinary = [
    (torch.randn(3, 9, 50),),
    (torch.randn(7, 13),),
    (signal.unfold(-1, 16, 4),),
    (signal.unfold(-1, 16, 5),),
    (signal.unfold(-1, 16, 4)[..., ::2],),
    (torch.randn(3, 9, 5).transpose(1, 2),),
    (torch.randn(3, 1, 50).expand(3, 9, 50),),
]
faulty = [(signal.unfold(-1, 16, 3)[..., ::2],), (signal.unfold(-1, 24, 5)[..., ::2],)]

for inputs in ordinary:
    error = difference(inputs)
    print("ordinary", error)
    if error > 2e-3:
        sys.exit(2)
errors = [difference(inputs) for inputs in faulty]
print("errors of the largest value", errors)
sys.exit(0 if min(errors) > 0.02 else 1)
