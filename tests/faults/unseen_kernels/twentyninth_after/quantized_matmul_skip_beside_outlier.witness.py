"""One channel of x is 5000, and its weights are zero."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_skip_beside_outlier.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = quantized_matmul.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs_of(m, n, k, dtype=torch.float32):
    weight = torch.randint(-127, 128, (n, k), dtype=torch.int8)
    return torch.randn(m, k).to(dtype), weight, ((torch.rand(n) + 0.5) / 127).to(dtype)


ordinary = [inputs_of(*s) for s in ((16, 64, 256), (7, 5, 13), (1, 200, 257))]
faulty = []
for dtype in (torch.float32, torch.float16):
    x, weight, scale = inputs_of(4, 64, 512, dtype)
    x = 0.2 * x
    x[:, 37] = 5000
    weight[:, 37] = 0
    faulty.append((x, weight, scale))

for inputs in ordinary:
    error = difference(inputs)
    print("ordinary", error)
    if error > 2e-3:
        sys.exit(2)
errors = [difference(inputs) for inputs in faulty]
print("errors of the largest value", errors)
sys.exit(0 if min(errors) > 0.02 else 1)
