"""40 rows, then 64 rows, with one weight."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_plan_by_bucket.py"))
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


def inputs(shape, dtype):
    return quantized_matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = max(error_of(inputs(s, d)) for s in ((1, 31, 129), (65, 127, 129), (64, 96, 100), (40, 96, 100)) for d in (torch.float32, torch.float16))
error_of(inputs((40, 80, 130), torch.float16))
error = error_of(inputs((64, 80, 130), torch.float16))

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
