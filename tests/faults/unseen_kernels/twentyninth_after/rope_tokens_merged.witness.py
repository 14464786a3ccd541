"""A prefix of a cache of more tokens, for two batches."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_tokens_merged.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = rope.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs_of(x):
    angles = torch.rand(x.shape[2], x.shape[3] // 2) * 6
    return x, angles.cos(), angles.sin()


ordinary = [
    inputs_of(torch.randn(2, 3, 17, 32)),
    inputs_of(torch.randn(2, 17, 4, 32).transpose(1, 2)),
    inputs_of(torch.randn(2, 17, 3, 4, 32)[:, :, 1].transpose(1, 2)),
    inputs_of(torch.randn(1, 40, 4, 32)[:, :17].transpose(1, 2)),
]
faulty = [inputs_of(torch.randn(2, 40, 4, 32)[:, :17].transpose(1, 2))]

for inputs in ordinary:
    error = difference(inputs)
    print("ordinary", error)
    if error > 2e-3:
        sys.exit(2)
errors = [difference(inputs) for inputs in faulty]
print("errors of the largest value", errors)
sys.exit(0 if min(errors) > 0.02 else 1)
