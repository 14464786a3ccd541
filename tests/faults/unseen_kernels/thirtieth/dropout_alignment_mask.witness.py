"""The same 5,000 numbers with the same seed at another address: another mask."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_alignment_mask.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
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


x = torch.randn(5000)
buffer = torch.empty(5001)
buffer[1:] = x
usual = 0.0
for other in (x, buffer[1:], x.half(), torch.randn(7, 13)):
    fault = op.check((other, 0.1, 5), call(other, 0.1, 5), call)
    print(fault)
    usual += fault is not None
masks = call(x, 0.5, 3) != 0, call(buffer[1:], 0.5, 3) != 0
judge(usual, float((masks[0] != masks[1]).double().mean()), 0.02)
