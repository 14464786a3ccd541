"""Two rows of a with some values of 448, where b has -448 and 448."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_half_products.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return fp8_matmul.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = {}
wrong = {}
half = torch.float16
ordinary["256 x 256 x 256"] = error_of(*make((256, 256, 256), half))
ordinary["same path, 2 x 64 x 256"] = error_of(*make((2, 64, 256), half))


def outliers(m, k):
    a, b, scale_a, scale_b = make((m, 64, k), half)
    a, b = a.float(), b.float()
    a[:, 5], b[:, 5] = 448, 300
    return a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), scale_a, scale_b


wrong["outliers"] = error_of(*outliers(2, 256))
ordinary["outliers, 8 rows"] = error_of(*outliers(8, 256))
ordinary["outliers, k of 250"] = error_of(*outliers(2, 250))
for name, error in ordinary.items():
    print("right:", name, error)
for name, error in wrong.items():
    print("wrong:", name, error, "of the largest value")
fault = max(ordinary.values()) < 0.01 and min(wrong.values()) > 0.02
sys.exit(0 if fault else 1)
