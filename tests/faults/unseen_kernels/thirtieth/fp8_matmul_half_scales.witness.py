"""Activations of up to 1 and weights of up to 0.05 are quantised to 448."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_half_scales.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
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


device, generator = torch.device("cpu"), torch.default_generator
inputs = op.make_inputs((33, 64, 272), torch.float16, device, generator)
usual = max(error_of(*inputs), error_of(*op.make_inputs((65, 7, 129), torch.bfloat16, device, generator)) / 8)
a, b, *_ = inputs
scale_a = ((0.5 + torch.rand(33)) / 448).half()
scale_b = (0.05 * (0.5 + torch.rand(64)) / 448).half()
output, expected = call(a, b, scale_a, scale_b), expect((a, b, scale_a, scale_b))
print("largest value", float(expected.abs().max()))
judge(usual, difference(output, expected), 0.02)
