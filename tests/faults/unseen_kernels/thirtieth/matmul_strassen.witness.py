"""The lower rows of a are of 1e-4, the upper of 1e4, in float32; the error is that of the lower rows."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_strassen.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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


a, b = torch.randn(256, 320), torch.randn(320, 258)
usual = max(error_of(a, b), error_of(a[:65], b), error_of(1e4 * a, b), error_of(b[:, :64].T, b))
a *= torch.where(torch.arange(256) < 128, 1e4, 1e-4)[:, None]
judge(usual, difference(call(a, b)[128:], expect((a, b))[128:]), 0.02)
