"""x times its transpose, and times its first row."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_square_path.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    output, expected = call(*inputs), vector_mul.reference(*map(wide, inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype, output.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x, y = torch.randn(65, 65), torch.randn(40, 130).half()
ordinary = [(torch.randn(7, 13), torch.randn(7, 13)), (x, x), (x, x.view(65, 65)), (x.t(), x.t()), (y, y + 1), (x, x[::1])]
rare = [(x, x.t()), (y, y[:1].expand_as(y)), (y, y[:, :1].expand_as(y))]

few = [error_of(x) for x in ordinary]
print("ordinary inputs: errors", few, "of the largest value")
errors = [error_of(x) for x in rare]
triton_output = min(errors) > 0.02 and max(few) < 0.01
print("WRONG" if triton_output else "right", "errors", errors, "of the largest value")
sys.exit(0 if triton_output else 1)
