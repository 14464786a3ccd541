"""Scales of about 0.0001 and 0.001 in float16, float8 of about 64, k of 1025."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_scales_multiplied_in_half.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


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


def inputs(shape, dtype):
    return fp8_matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = max(error_of(inputs(s, d)) for s in ((65, 127, 129), (33, 64, 272)) for d in (torch.float16, torch.bfloat16))
a, b, scale_a, scale_b = inputs((33, 64, 1025), torch.float16)
error = error_of((a, b, scale_a / 64, scale_b / 16))
print("of about 0.1 each", expect((a, b, scale_a / 64, scale_b / 16)).abs().mean())

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
