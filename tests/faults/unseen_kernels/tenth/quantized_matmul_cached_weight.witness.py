"""New weights are loaded into the same parameter by .data.copy_."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_cached_weight.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return quantized_matmul.reference(*wide)


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


x, scale = torch.randn(4, 96), torch.rand(80) / 127
weight = torch.randint(-127, 128, (80, 96), dtype=torch.int8)
call(x, weight, scale)
weight.data.copy_(torch.randint(-127, 128, (80, 96), dtype=torch.int8))
judge(call(x, weight, scale), exact(x, weight, scale))
