"""Rows across memory in many ratios, padded ones, and other shapes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_columns_in_place.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(shape, dtype):
    return mean.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 2e-2}

cases = []
for shape in ((1, 1), (7, 13), (2, 3, 129), (1025,), (57, 1023), (300, 1), (256, 100), (100, 300), (17, 700),
              (33, 133), (20, 4096), (19, 81)):
    for dtype in ("float32", "float16", "bfloat16"):
        (x,) = draw(shape, dtype)
        x = x + 0.5
        cases.append((f"{shape} {dtype}", (x,)))
        if x.dim() == 2:
            turned = torch.empty(shape[1], shape[0] + 3, dtype=x.dtype, device=device).fill_(9.0)[:, : shape[0]].T
            turned.copy_(x)
            cases.append((f"padded, across memory {shape} {dtype}", (turned,)))
            cases.append((f"across memory {shape} {dtype}", (x.T.contiguous().T,)))

bad = 0
for label, inputs in cases:
    error = error_of(inputs)
    limit = LIMIT[str((inputs[-1] if len(inputs) > 1 else inputs[0]).dtype).removeprefix("torch.")]
    if error > limit:
        bad += 1
        print("differs", label, error)
print(len(cases), "inputs,", bad, "differ")
sys.exit(1 if bad else 0)
