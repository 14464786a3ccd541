"""Activations with a mean of 20 in float16, 4096 of them a row: the outputs are about 700, the sums 82,000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_row_sums_in_half.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = quantized_matmul.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for m, n, k in ((7, 5, 13), (17, 33, 1), (65, 127, 129), (3, 31, 1025)):
    for dtype in (torch.float32, torch.float16):
        drawn = quantized_matmul.make_inputs((m, n, k), dtype, torch.device("cpu"), torch.Generator())
        ordinary = max(ordinary, error_of(*drawn))

shape, device = (4, 64, 4096), torch.device("cpu")
x, weight, scale = quantized_matmul.make_inputs(shape, torch.float16, device, torch.Generator())
ordinary = max(ordinary, error_of(x, weight, scale))
print("a mean of 4: error", error_of(x + 4, weight, scale))
print("a mean of 20 in float32: error", error_of(x.float() + 20, weight, scale.float()))
error = error_of(x + 20, weight, scale)

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
