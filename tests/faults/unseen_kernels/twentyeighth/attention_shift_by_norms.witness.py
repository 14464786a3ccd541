"""Keys of about 3, queries of about -3: all scores are about -72."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_shift_by_norms.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return attention.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = max(error_of(inputs(s, d)) for s in ((1, 2, 127, 64), (1, 1, 33, 80)) for d in (torch.float32, torch.float16))
q, k, v = inputs((1, 2, 127, 64), torch.float32)
ordinary = max(ordinary, error_of((4 * q, 4 * k, v)), error_of((3 + q, 3 + k, v)))
error = error_of((q - 3, k + 3, v))

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
