"""170 sequences of 1,000 positions and 32 heads: 5.4 million rows."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_float_division.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
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


x, cos, sin = op.make_inputs((2, 32, 1000, 8), torch.float32, torch.device("cpu"), torch.default_generator)
usual = error_of(x, cos, sin)
x, cos, sin = op.make_inputs((170, 32, 1000, 1), torch.float32, torch.device("cpu"), torch.default_generator)
output, expected = call(x, cos, sin), expect((x, cos, sin))
print(int(((output - expected).abs().amax(-1) > 0.01).sum()), "rows are wrong")
judge(usual, difference(output, expected), 0.02)
