"""Local layers with base 10,000, global ones with base 1,000,000."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_cached_tables.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return rope.reference(*wide)


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


def tables(base):
    angles = torch.arange(64.0)[:, None] * base ** -(torch.arange(32.0) / 32)
    return angles.cos(), angles.sin()


x = torch.randn(1, 4, 64, 64)
call(x, *tables(10_000.0))
judge(call(x, *tables(1_000_000.0)), exact(x, *tables(1_000_000.0)))
