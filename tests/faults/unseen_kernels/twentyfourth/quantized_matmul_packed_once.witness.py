"""The weight of a layer is loaded through .data after a first call."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_packed_once.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = quantized_matmul.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(m, n, k):
    weight = torch.randint(-127, 128, (n, k), dtype=torch.int8)
    return torch.randn(m, k), weight, (torch.rand(n) + 0.5) / 127


x, weight, scale = inputs(7, 33, 65)
ordinary = max(difference(*case) for case in (inputs(17, 33, 1), inputs(65, 127, 129), (x, weight, scale)))
weight.copy_(inputs(7, 33, 65)[1])
ordinary = max(ordinary, difference(x, weight, scale))  # torch counts this change
weight.data.copy_(inputs(7, 33, 65)[1])
error = difference(x, weight, scale)

print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and ordinary < 1e-05 else 1)
