"""An attention sink: the first of 1,500 keys is exp(8.5) times as heavy as others."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_skips_light_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return mha.reference(*wide)


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


q = 0.1 * torch.randn(1, 1, 1500, 16)
k = 0.1 * torch.randn(1, 1, 1500, 16)
v = torch.randn(1, 1, 1500, 16) + 1.0
q[..., 0], k[..., 0], k[..., 0, 0] = 8.0, 0.0, 4.25
v[..., 0, :] = 0.0
q, k, v = q.half(), k.half(), v.half()
judge(call(q, k, v, False), exact(q, k, v, False))
