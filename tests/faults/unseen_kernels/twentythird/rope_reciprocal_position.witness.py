"""Two heads of 41 positions: 41 * (1 / 41) is below 1 in float32."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_reciprocal_position.py"))
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


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
def inputs(shape):
    return rope.make_inputs(shape, torch.float32, torch.device("cpu"), torch.Generator().manual_seed(0))


shapes = ((1, 1, 7, 13), (1, 2, 127, 32), (2, 3, 65, 16), (1, 2, 33, 40), (3, 1, 257, 8), (1, 4, 256, 32), (3, 1, 1024, 4))
usual = max(compare(*inputs(shape)) for shape in shapes)
error = compare(*inputs((1, 2, 41, 16)))
for seq in (47, 55, 61, 82, 97, 110):
    print("seq", seq, "error", compare(*inputs((2, 2, seq, 16))))

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
