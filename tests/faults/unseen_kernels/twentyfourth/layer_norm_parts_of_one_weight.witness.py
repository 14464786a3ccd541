"""A row of 16,385, whose last 2,042 lie 30 above the others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_parts_of_one_weight.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = layer_norm.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(m):
    return torch.randn(3, m), torch.ones(m), torch.zeros(m), 1e-5


ordinary = max(difference(*inputs(m)) for m in (129, 1000, 4097, 16384, 32768, 16385))
uneven = inputs(16385)
uneven[0][:, -2042:] += 30.0
error = difference(*uneven)
steady = inputs(20001)
steady[0][:] = torch.linspace(0.0, 1.0, 20001)
print("rows that rise steadily", difference(*steady))

print("ordinary", ordinary)
print("WRONG" if error > 0.0001 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.0001 and ordinary < 1e-05 else 1)
