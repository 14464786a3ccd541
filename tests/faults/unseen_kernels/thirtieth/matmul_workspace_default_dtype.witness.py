"""float32 matrices, while torch's default dtype is bfloat16, as it is while many models are loaded."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_workspace_default_dtype.py"))
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


a, b = torch.randn(40, 2000), torch.randn(2000, 50)
usual = max(error_of(a, b), error_of(a.half(), b.half()), error_of(a[:, :100], b[:100]))
torch.set_default_dtype(torch.bfloat16)
judge(usual, error_of(a, b), 5e-4, 4e-4)
