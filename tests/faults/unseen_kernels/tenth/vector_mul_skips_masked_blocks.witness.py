"""A mask whose last rows are zeros, over activations with an infinity there."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_skips_masked_blocks.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return vector_mul.reference(*wide)


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


x, mask = torch.randn(32, 128), torch.ones(32, 128)
mask[16:] = 0.0
x[30, 5] = float("inf")
judge(call(x, mask), exact(x, mask))
