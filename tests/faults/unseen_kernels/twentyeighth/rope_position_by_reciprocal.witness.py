"""66 heads of 131,072 positions: 8.7 million rows, of one pair each."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_position_by_reciprocal.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rope.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return rope.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = max(error_of(inputs(s, d)) for s in ((1, 2, 127, 32), (3, 1, 257, 8), (2, 7, 1023, 5)) for d in (torch.float32, torch.float16))
ordinary = max(ordinary, error_of(inputs((1, 4, 100_003, 1), torch.float16)))
inputs = inputs((1, 66, 131_072, 1), torch.float16)
output, expected = call(*inputs), expect(inputs)
error = difference(output, expected)
print("rows that differ", int(((output - expected).abs() > 0.02).any(-1).sum()))

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
