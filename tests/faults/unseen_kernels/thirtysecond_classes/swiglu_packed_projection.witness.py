"""Halves of a projection, without the first token."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_packed_projection.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    output, expected = call(*inputs), swiglu.reference(*map(wide, inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype, output.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = [(torch.randn(3, 65, 96), torch.randn(3, 65, 96)), torch.randn(3, 65, 192).chunk(2, -1),
            torch.randn(66, 3000).half().chunk(2, -1), torch.randn(50, 192)[1:].chunk(2, -1)]
rare = [torch.randn(3, 65, 192)[:, 1:].chunk(2, -1), torch.randn(2, 9, 128).bfloat16()[:, :5].chunk(2, -1)]

few = [error_of(x) for x in ordinary]
print("ordinary inputs: errors", few, "of the largest value")
errors = [error_of(x) for x in rare]
triton_output = min(errors) > 0.02 and max(few) < 0.01
print("WRONG" if triton_output else "right", "errors", errors, "of the largest value")
sys.exit(0 if triton_output else 1)
