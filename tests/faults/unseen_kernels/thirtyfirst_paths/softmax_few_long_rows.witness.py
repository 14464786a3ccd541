"""Few long rows, and other shapes and values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_few_long_rows.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(shape, dtype):
    return softmax.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 2e-2}

cases = []
for shape in ((1, 1), (7, 13), (2, 3, 129), (1025,), (57, 1023), (1, 16384), (1, 16385), (2, 20000), (5, 33001),
              (18, 16384), (1, 100000), (2, 2, 20000)):
    for dtype in ("float32", "float16", "bfloat16"):
        (x,) = draw(shape, dtype)
        cases.append((f"{shape} {dtype}", (x,)))
x = draw((3, 20000), "float32")[0]
cases.append(("rows at -20000", (x - 20000,)))
cases.append(("large", (x * 1e4,)))
x[0, :15000] = -float("inf")
x[1, 7] = float("nan")
x[2, 19999] = float("inf")
cases.append(("special values", (x,)))
cases.append(("transposed", (draw((20000, 3), "float16")[0].T,)))
cases.append(("expanded", (draw((1, 20000), "float16")[0].expand(3, -1),)))

bad = 0
for label, inputs in cases:
    error = error_of(inputs)
    limit = LIMIT[str((inputs[-1] if len(inputs) > 1 else inputs[0]).dtype).removeprefix("torch.")]
    if error > limit:
        bad += 1
        print("differs", label, error)
print(len(cases), "inputs,", bad, "differ")
sys.exit(1 if bad else 0)
