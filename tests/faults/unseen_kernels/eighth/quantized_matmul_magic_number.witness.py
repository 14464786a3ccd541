"""Weights rounded and clamped to -128 to 127."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_magic_number.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


w = torch.randn(64, 128)
scale = w.abs().amax(dim=1) / 160
weight = (w / scale[:, None]).round().clamp(-128, 127).to(torch.int8)
inputs = (torch.randn(16, 128), weight, scale)
output = call(*inputs)
expected = quantized_matmul.reference(*map(double, inputs))

worst, size = compare(output, expected)
print("WRONG" if worst > 0.02 else "right", "max relative error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 else 1)
