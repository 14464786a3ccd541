"""Two or more positions, at least 256 heads (of all batches) for each, not a multiple of 64."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_shared_position.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


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


def draw(shape, dtype):
    return rope.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = [(f"{shape} {dtype}", draw(shape, dtype)) for shape in ((1, 2, 127, 32), (2, 3, 65, 16), (1, 1, 129, 64), (8, 32, 1, 64), (16, 32, 2, 32))
            for dtype in ("float32", "float16", "bfloat16")]
rare = [(f"{shape} {dtype}", draw(shape, dtype)) for shape, dtype in (((30, 20, 2, 32), "float32"), ((26, 31, 3, 16), "bfloat16"))]

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
