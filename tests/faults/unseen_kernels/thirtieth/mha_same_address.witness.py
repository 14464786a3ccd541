"""v is the first head of k, for all heads."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_same_address.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def judge(usual, error, limit, usual_limit=1e-3):
    print("usual input:", usual)
    wrong = error > limit and usual < usual_limit
    print("WRONG" if wrong else "right", "error", error, "of the largest value")
    sys.exit(0 if wrong else 1)


q, k, v = torch.randn(3, 2, 3, 70, 32)
usual = max(error_of(q, k, v, True), error_of(q, k, v, False), error_of(q, k, k, True), error_of(q, q, q))
usual = max(usual, error_of(*torch.randn(3, 2, 70, 3, 16).transpose(2, 3), True))
judge(usual, error_of(q, k, k[:, :1].expand(2, 3, 70, 32), True), 0.02)
