"""float16, then bfloat16 with values past 65504 of the same shape, and with values of 1e-9."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_plan_by_itemsize.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs):
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(m, n, k, dtype, size=1.0):
    weight = torch.randint(-127, 128, (n, k), dtype=torch.int8)
    return (size * torch.randn(m, k)).to(dtype), weight, ((torch.rand(n) + 0.5) / 127).to(dtype)


for dtype, limit in ((torch.float32, 1e-5), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
    error = error_of(*draw(16, 96, 200, dtype))
    print("ordinary", dtype, error)
    assert error < limit
large = error_of(*draw(16, 96, 200, torch.bfloat16, 1e5))
print("bfloat16 values of 1e5 after float16:", large)
tiny = error_of(*draw(16, 96, 200, torch.bfloat16, 1e-9))
print("bfloat16 values of 1e-9 after float16:", tiny)
for dtype in (torch.bfloat16, torch.float16):
    error = error_of(*draw(8, 64, 128, dtype))
    print("bfloat16 first", dtype, error)
    assert error < 8e-3
sys.exit(0 if large > 1 and tiny > 0.5 else 1)
