"""More rows than programs, whose means differ by thousands."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_shift_of_last_row.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)

for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((7, 13), (3, 4097), (300, 65), (2, 3, 129), (400, 1)):
        x = torch.randn(shape, dtype=dtype)
        print("ordinary", dtype, shape, error := error_of(x, torch.randn(shape[-1], dtype=dtype), torch.randn(shape[-1], dtype=dtype), 1e-5))
        assert error < 3 * torch.finfo(dtype).eps + 1e-5

x = torch.randn(600, 64)
print("one large mean", error_of(x + 1e4, torch.ones(64), torch.zeros(64), 1e-5))
print("few rows", error_of(x[:200] + 1e4 * torch.randn(200, 1), torch.ones(64), torch.zeros(64), 1e-5))
error = error_of(x + 1e4 * torch.randn(600, 1), torch.ones(64), torch.zeros(64), 1e-5)

print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
