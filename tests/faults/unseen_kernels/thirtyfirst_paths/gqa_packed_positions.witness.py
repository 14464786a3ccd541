"""Causal, groups of at least 4 heads, head_dim 64 or 128, seq 3 to 15 and no power of two, at most 128 rows in a group."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_packed_positions.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gqa.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(shape, dtype):
    return gqa.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = [(f"{shape} {dtype}", (*draw(shape, dtype)[:3], causal)) for shape in ((1, 6, 2, 127, 64), (1, 8, 2, 33, 80), (2, 8, 2, 8, 64))
            for dtype in ("float32", "float16") for causal in (False, True)]
ordinary.append(("seq 5, not causal", (*draw((1, 8, 2, 5, 64), "float32")[:3], False)))
rare = [(f"{shape} {dtype}", (*draw(shape, dtype)[:3], True)) for shape, dtype in (((1, 8, 2, 5, 64), "float32"), ((2, 32, 4, 3, 128), "float16"))]

for label, inputs in ordinary:
    error = error_of(inputs)
    print("ordinary", label, "error", error)
    if error > 2e-2:
        sys.exit(2)
shows = True
for label, inputs in rare:
    error = error_of(inputs)
    print("WRONG" if error > 0.02 else "right", label, "error", error, "of the largest value")
    shows &= error > 0.02
sys.exit(0 if shows else 1)
