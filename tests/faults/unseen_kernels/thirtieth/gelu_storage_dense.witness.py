"""The real parts of interleaved complex numbers, expanded to two heads."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_storage_dense.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
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


x = torch.randn(300, 2)
half = torch.randn(40, 30, 8).half()
usual = max(error_of(half), error_of(half.transpose(0, 2)), error_of(half[:, ::2]), error_of(half[5:]))
usual = max(usual, error_of(torch.randn(50).expand(7, 50)))
judge(usual, error_of(x[:, 0].expand(2, 300)), 0.02)
