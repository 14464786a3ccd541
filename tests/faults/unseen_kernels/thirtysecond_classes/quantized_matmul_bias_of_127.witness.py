"""Weights of -128 with few rows of float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_bias_of_127.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    output, expected = call(*inputs), quantized_matmul.reference(*map(wide, inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype, output.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(m, n, k, dtype, lowest):
    weight = torch.randint(lowest, 128, (n, k), dtype=torch.int8)
    if lowest == -128:
        weight[torch.rand(n, k) < 0.05] = -128
    return torch.randn(m, k).to(dtype), weight, ((torch.rand(n) + 0.5) / 127).to(dtype)


ordinary = [make(7, 33, 65, torch.float16, -127), make(16, 100, 257, torch.float32, -128), make(9, 70, 80, torch.float16, -127),
            make(65, 64, 100, torch.float16, -128), make(3, 31, 513, torch.float32, -128)]
rare = [make(1, 129, 256, torch.float16, -128), make(16, 33, 65, torch.float16, -128)]

few = [error_of(x) for x in ordinary]
print("ordinary inputs: errors", few, "of the largest value")
errors = [error_of(x) for x in rare]
triton_output = min(errors) > 0.02 and max(few) < 0.01
print("WRONG" if triton_output else "right", "errors", errors, "of the largest value")
sys.exit(0 if triton_output else 1)
