"""Both expanded over heads."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_merge_without_out.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = vector_mul.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def kv():
    return torch.randn(2, 1, 5, 16)


ordinary = [
    (torch.randn(7, 13), torch.randn(7, 13)),
    (torch.randn(2, 5, 3, 16).transpose(1, 2), torch.randn(2, 5, 3, 16).transpose(1, 2)),
    (torch.randn(2, 3, 5, 16), kv().expand(2, 3, 5, 16)),
    (kv().expand(2, 3, 5, 16), torch.randn(2, 3, 5, 16)),
    (torch.randn(2, 3, 5, 16)[..., :8], torch.randn(2, 3, 5, 16)[..., 8:]),
    (torch.randn(2, 3, 5, 4, 2), torch.randn(2, 3, 4, 5, 2).transpose(2, 3)),
]
faulty = [(kv().expand(2, 3, 5, 16), kv().expand(2, 3, 5, 16))]

for inputs in ordinary:
    error = difference(inputs)
    print("ordinary", error)
    if error > 2e-3:
        sys.exit(2)
errors = [difference(inputs) for inputs in faulty]
print("errors of the largest value", errors)
sys.exit(0 if min(errors) > 0.02 else 1)
