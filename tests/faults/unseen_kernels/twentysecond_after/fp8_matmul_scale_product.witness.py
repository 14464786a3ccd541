"""Matrices of values up to about 0.05, in float8 with scales of about 1e-4 in float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_scale_product.py"))
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


def round_to_fp8(x):
    scale = (x.abs().amax(dim=1) / 448.0).half()
    return (x / scale.float()[:, None]).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scale


(a, scale_a), (b, scale_b) = round_to_fp8(0.015 * torch.randn(64, 256)), round_to_fp8(0.015 * torch.randn(48, 256))
inputs = (a, b, scale_a, scale_b)

expected = expect(inputs)
error = difference(call(*inputs), expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
