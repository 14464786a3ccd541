"""Two batches of two heads, cut out of [batch, seq, heads, width]."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_four_heads.py"))
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


def ordinary(*shape):
    return rope.make_inputs(shape, torch.float32, torch.device("cpu"), torch.Generator().manual_seed(0))


usual = max(difference(call(*x), expect(x)) for x in (ordinary(2, 3, 65, 16), ordinary(2, 2, 33, 40)))
x, cos, sin = ordinary(2, 4, 33, 8)
inputs = (x.transpose(1, 2).contiguous().transpose(1, 2), cos, sin)  # heads of four: no group crosses
usual = max(usual, difference(call(*inputs), expect(inputs)))
x, cos, sin = ordinary(2, 2, 33, 8)
inputs = (x.transpose(1, 2).contiguous().transpose(1, 2), cos, sin)
error = difference(call(*inputs), expect(inputs))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and usual < 1e-05 else 1)
