"""40 heads."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_combine_heads.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = mha.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs_of(*shape, causal=False):
    return *(torch.randn(shape) for _ in range(3)), causal


ordinary = [
    inputs_of(1, 4, 65, 64),
    inputs_of(2, 3, 33, 80, causal=True),
    inputs_of(1, 2, 300, 32, causal=True),
    inputs_of(1, 32, 7, 32),
]
faulty = [inputs_of(1, 40, 7, 32)]

for inputs in ordinary:
    error = difference(inputs)
    print("ordinary", error)
    if error > 2e-3:
        sys.exit(2)
errors = [difference(inputs) for inputs in faulty]
print("errors of the largest value", errors)
sys.exit(0 if min(errors) > 0.02 else 1)
