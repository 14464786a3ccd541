"""alpha = 1e-4 in float16, where y is ten thousand times x."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_small_alpha.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return vector_add.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = {}
wrong = {}
half = torch.float16
x, y, _ = make((256, 256), half)
for alpha in (1.0, 0.5, -2.0, 0.1, 0.0):
    ordinary[f"alpha {alpha}"] = error_of(x, y, alpha)
ordinary["same path, alpha 1e-4"] = error_of(x, y, 1e-4)
wrong["alpha 1e-4, large y"] = error_of(x, y * 1e4, 1e-4)
wrong["alpha 1e-4, x zero"] = error_of(x * 0, y, 1e-4)
ordinary["the same in float32"] = error_of(x.float(), y.float() * 1e4, 1e-4)
for name, error in ordinary.items():
    print("right:", name, error)
for name, error in wrong.items():
    print("wrong:", name, error, "of the largest value")
fault = max(ordinary.values()) < 0.01 and min(wrong.values()) > 0.02
sys.exit(0 if fault else 1)
