"""Rows of 7168 = 4096 + 2048 + 1024, a width of known models."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_two_blocks.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return rms_norm.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = {}
wrong = {}
ordinary["256 x 256"] = error_of(*make((256, 256)))
ordinary["4096"] = error_of(*make((4, 4096)))
ordinary["same path, 5120"] = error_of(*make((4, 5120)))
ordinary["same path, 3072"] = error_of(*make((4, 3072)))
wrong["7168"] = error_of(*make((4, 7168)))
wrong["11264"] = error_of(*make((4, 11264)))
for name, error in ordinary.items():
    print("right:", name, error)
for name, error in wrong.items():
    print("wrong:", name, error, "of the largest value")
fault = max(ordinary.values()) < 0.01 and min(wrong.values()) > 0.02
sys.exit(0 if fault else 1)
