"""576 keys: nine tiles, in parts of three."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_empty_part.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
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


ordinary = 0.0
for seq in (64, 257, 512, 577, 640, 1023):
    ordinary = max(ordinary, error_of(*torch.randn(3, 1, 1, seq, 64)))
error = error_of(*torch.randn(3, 1, 2, 576, 64))

print("ordinary", ordinary, "of the largest value")
print("WRONG" if error > 0.01 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.01 and ordinary < 1e-05 else 1)
