"""a with itself, but with two different scales."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_mirrored_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def wide(x):  # float8 stays, the reference converts it
    return x.double() if x.dtype in (torch.float16, torch.bfloat16) else x


def draw(m, n, k):
    return fp8_matmul.make_inputs((m, n, k), torch.float16, torch.device("cpu"), torch.Generator().manual_seed(m))


for shape in ((7, 5, 13), (65, 127, 129), (33, 64, 272), (130, 130, 64)):
    ordinary = draw(*shape)
    print("ordinary error", shape, difference(call(*ordinary), expect(ordinary)))
a, b, scale_a, scale_b = draw(130, 130, 64)
same = (a, a, scale_a, scale_a)
print("one tensor, one scale, error", difference(call(*same), expect(same)))
small = (a[:60], a[:60], scale_a[:60], scale_b[:60])
print("one tensor, one tile, error", difference(call(*small), expect(small)))
copy = (a, a.clone(), scale_a, scale_b)
print("a copy, two scales, error", difference(call(*copy), expect(copy)))

inputs = (a, a, scale_a, scale_b)
error = difference(call(*inputs), expect(inputs))
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
