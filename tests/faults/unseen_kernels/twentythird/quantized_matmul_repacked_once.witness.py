"""A square weight, then its transpose, a view of the same memory."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_repacked_once.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return quantized_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


make = torch.Generator().manual_seed(0)
x, weight, scale = quantized_matmul.make_inputs((17, 64, 64), torch.float32, torch.device("cpu"), make)
usual = max(difference(call(x, w, scale), expect((x, w, scale))) for w in (weight, weight, weight.clone()))
weight[:, 3] += 1  # a change of the weight is seen
usual = max(usual, difference(call(x, weight, scale), expect((x, weight, scale))))
inputs = (x, weight.t(), scale)
error = difference(call(*inputs), expect(inputs))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
