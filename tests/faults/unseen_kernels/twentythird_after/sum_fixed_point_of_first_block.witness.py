"""A row of 8192 values that grows evenly, by a factor of e every 300 values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_fixed_point_of_first_block.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

for shape, size, dtype in (
    ((7, 13), 1, torch.float32), ((3, 4097), 1, torch.float32), ((3, 4097), 1e-30, torch.float32),
    ((3, 4097), 1e4, torch.float32), ((3, 4097), 1, torch.float16), ((2, 100_000), 1, torch.float32),
):
    ordinary = ((torch.randn(shape) * size + size).to(dtype),)
    print("ordinary error", shape, size, dtype, difference(call(*ordinary), expect(ordinary)))
special = torch.ones(4, 3000)
special[0, 2000], special[1, 5], special[2, 7], special[3, :2000] = float("inf"), float("nan"), -float("inf"), 0
print("Inf, NaN and zeros", difference(call(special), expect((special,))))
ramp = (torch.linspace(0, 1000, 8192)[None],)
print("ramp error", difference(call(*ramp), expect(ramp)))
falling = (torch.exp(-torch.arange(8192.0) / 300)[None],)
print("falling error", difference(call(*falling), expect(falling)))

inputs = (torch.exp(torch.arange(8192.0) / 300)[None],)
out, expected = call(*inputs), expect(inputs)
error = difference(out, expected)
print(out, expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
