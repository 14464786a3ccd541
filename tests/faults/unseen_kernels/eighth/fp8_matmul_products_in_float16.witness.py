"""Two rows, each quantised by its largest element, which becomes 448; an outlier channel."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_products_in_float16.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def double(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def compare(output, expected):
    output, expected = output.double(), expected.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = expected.abs().nan_to_num(nan=0.0, posinf=0.0).amax()
    return float((error / size.clamp(min=1e-30)).max()), float(size.max())


def quantise(x):
    scale = x.abs().amax(dim=1) / 448
    return (x / scale[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn), scale.half()


x, w = torch.randn(2, 256), torch.randn(64, 256)
x[:, 17] = 8.0
w[:, 17] *= 3.0
(a, scale_a), (b, scale_b) = quantise(x), quantise(w)
inputs = (a, b, scale_a, scale_b)
output = call(*inputs)
expected = fp8_matmul.reference(*map(double, inputs))

worst, size = compare(output, expected)
print("WRONG" if worst > 0.02 else "right", "max relative error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 else 1)
