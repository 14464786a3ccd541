"""At most 32 rows, k at least 16 times the other sides, a multiple of 64, but not of 64 times the splits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_deep_split_k.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(shape, dtype):
    return matmul.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = [(f"{shape} {dtype}", draw(shape, dtype)) for shape in ((7, 5, 13), (65, 127, 129), (3, 31, 1025), (128, 128, 128), (16, 64, 2048))
            for dtype in ("float32", "float16")]
rare = [(f"{shape} {dtype}", draw(shape, dtype)) for shape, dtype in (((16, 64, 2112), "float32"), ((1, 1, 1088), "float16"), ((32, 100, 4160), "float32"))]

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
