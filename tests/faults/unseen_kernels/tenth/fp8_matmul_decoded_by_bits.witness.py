"""Weights of about 0.005 in float8: nearly all are subnormal."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_decoded_by_bits.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return fp8_matmul.reference(*wide)


def judge(output, expected):
    expected = expected.double()
    pairs = output.double().nan_to_num(nan=7e77), expected.nan_to_num(nan=7e77)
    error = torch.where(pairs[0] == pairs[1], 0.0, (pairs[0] - pairs[1]).abs())
    worst = float(error.max())
    usual = expected[expected.isfinite()].abs()
    size = float(usual.max()) if usual.numel() else 1.0
    wrong = worst > 0.02 * size
    print("WRONG" if wrong else "right", "max error", worst, "of values up to", size)
    sys.exit(0 if wrong else 1)


a = (64 * torch.randn(20, 96)).clamp(-448, 448).to(torch.float8_e4m3fn)
b = (0.005 * torch.randn(24, 96)).to(torch.float8_e4m3fn)
scale_a, scale_b = (torch.rand(20) / 64).half(), (torch.rand(24) + 0.5).half()
judge(call(a, b, scale_a, scale_b), exact(a, b, scale_a, scale_b))
