"""up and gate are the first and the second half of one matrix, of columns in whole 32 bytes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_halves_of_one.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(shape, dtype):
    return swiglu.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = [(f"{shape} {dtype}", draw(shape, dtype)) for shape in ((7, 13), (1025,), (2, 3, 129), (257, 1023), (256, 256))
            for dtype in ("float32", "float16", "bfloat16")]
for dtype in ("float32", "float16", "bfloat16"):
    gate, up = draw((48, 256), dtype)[0].chunk(2, dim=1)
    ordinary.append((f"gate first {dtype}", (gate, up)))
rare = []
for shape, dtype in (((48, 256), "float32"), ((7, 352), "float16"), ((300, 2048), "bfloat16")):
    up, gate = draw(shape, dtype)[0].chunk(2, dim=1)
    rare.append((f"up first {shape} {dtype}", (gate, up)))

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
