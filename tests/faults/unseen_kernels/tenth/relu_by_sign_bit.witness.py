"""A tensor with the NaNs of 0 / 0, whose sign bit is set."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_by_sign_bit.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return relu.reference(*wide)


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


counts = torch.tensor([[3.0, 0.0, 2.0, 0.0], [1.0, 0.0, 5.0, 4.0]])
x = torch.where(counts == 0, -torch.tensor(float("nan")), counts)
print("sign bits of 0 / 0 here:", torch.signbit(torch.zeros(4) / torch.zeros(4)).tolist())
judge(call(x), exact(x))
