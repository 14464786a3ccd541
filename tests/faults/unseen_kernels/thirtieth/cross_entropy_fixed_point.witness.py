"""512 rows of logits of about a million; and a few odd values that are right."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_fixed_point.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
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


logits, target = torch.randn(300, 33), torch.randint(33, (300,))
usual = max(error_of(logits, target), error_of(logits.half(), target), error_of(1e4 * logits, target))
logits[4, 5] = float("nan")
usual = max(usual, error_of(logits, target))
judge(usual, error_of(1e6 * torch.randn(512, 16), torch.randint(16, (512,))), 0.02)
