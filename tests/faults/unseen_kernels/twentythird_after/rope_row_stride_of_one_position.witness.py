"""One position, [batch, 1, heads, dim] with heads and positions transposed, part of a larger batch."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_row_stride_of_one_position.py"))
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


def angles(seq, half):
    t = torch.randn(seq, half)
    return t.cos(), t.sin()


for shape in ((2, 3, 65, 32), (1, 2, 127, 64)):
    ordinary = (torch.randn(shape), *angles(shape[2], shape[3] // 2))
    print("ordinary error", difference(call(*ordinary), expect(ordinary)))
moved = (torch.randn(2, 65, 3, 32).transpose(1, 2), *angles(65, 16))
print("65 positions, transposed, error", difference(call(*moved), expect(moved)))
single = (torch.randn(2, 4, 1, 32), *angles(1, 16))
print("one position, not transposed, error", difference(call(*single), expect(single)))

batch = torch.randn(8, 1, 4, 32)  # the rows it reads by mistake are inside
x = batch[:2].transpose(1, 2)
inputs = (x, *angles(1, 16))
print("strides", x.stride(), "contiguous", x.is_contiguous())
error = difference(call(*inputs), expect(inputs))
print("WRONG" if error > 0.1 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.1 else 1)
