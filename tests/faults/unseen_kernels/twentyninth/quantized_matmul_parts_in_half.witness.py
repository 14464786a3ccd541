"""x of about 64 in float16, k of 4096: the output is about 2000, the sums of the parts about 150,000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_parts_in_half.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


x, weight = torch.randn(4, 4096).half(), torch.randint(-127, 128, (64, 4096), dtype=torch.int8)
scale = ((torch.rand(64) + 0.5) / 127).half()
ordinary = max(error_of(x, weight, scale), error_of((64 * x).bfloat16(), weight, scale.bfloat16()) / 10, error_of((64 * x).float(), weight, scale.float()), error_of(4 * x, weight, scale), error_of(x[:, :500], weight[:, :500], scale))
error = error_of(64 * x, weight, scale)

print("ordinary", ordinary, "of the largest value")
print("WRONG" if error > 0.01 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.01 and ordinary < 0.002 else 1)
