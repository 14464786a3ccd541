"""x[:, :-1] of float16 with three dimensions and rows of 1024: a gap between batches."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_view_rows.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return gelu.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = {}
wrong = {}
half = torch.float16
ordinary["256 x 256"] = error_of(*make((256, 256)))
ordinary["half, 256 x 1024"] = error_of(*make((256, 1024), half))
(x,) = make((2, 9, 2048), half)
ordinary["same path, half of a projection"] = error_of(x[..., :1024])
wrong["a position left out"] = error_of(x[:, :-1])
ordinary["the same in float32"] = error_of(x.float()[:, :-1])
ordinary["the same with short rows"] = error_of(x[:, :-1, :512])
for name, error in ordinary.items():
    print("right:", name, error)
for name, error in wrong.items():
    print("wrong:", name, error, "of the largest value")
fault = max(ordinary.values()) < 0.01 and min(wrong.values()) > 0.02
sys.exit(0 if fault else 1)
