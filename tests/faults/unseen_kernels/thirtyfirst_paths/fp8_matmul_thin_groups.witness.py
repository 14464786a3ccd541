"""Tall, wide and other shapes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_thin_groups.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


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


def draw(shape, dtype):
    return fp8_matmul.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 2e-2}

cases = []
for shape in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (65, 127, 129), (3, 31, 1025), (577, 64, 32), (640, 100, 40), (705, 130, 64),
              (1100, 129, 70), (64, 577, 65), (100, 1100, 33), (512, 65, 32), (130, 1000, 17), (1, 2000, 64), (2000, 1, 64)):
    for dtype in ("float16", "bfloat16"):
        cases.append((f"{shape} {dtype}", draw(shape, dtype)))
a, b, sa, sb = draw((700, 100, 64), "float16")
cases.append(("a across memory", (a.T.contiguous().T, b, sa, sb)))
cases.append(("b across memory", (a, b.T.contiguous().T, sa, sb)))
cases.append(("every second row", (a[::2], b[::2], sa[::2], sb[::2])))

bad = 0
for label, inputs in cases:
    error = error_of(inputs)
    limit = LIMIT[str((inputs[-1] if len(inputs) > 1 else inputs[0]).dtype).removeprefix("torch.")]
    if error > limit:
        bad += 1
        print("differs", label, error)
print(len(cases), "inputs,", bad, "differ")
sys.exit(1 if bad else 0)
