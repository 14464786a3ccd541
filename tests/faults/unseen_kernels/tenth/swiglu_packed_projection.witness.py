"""A packed projection whose first half is up and second half gate."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_packed_projection.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return swiglu.reference(*wide)


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


hidden = torch.randn(4, 32, 2 * 48)
up, gate = hidden.chunk(2, dim=-1)
judge(call(gate, up), exact(gate, up))
