"""64 heads of 12 positions, head_dim 80."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_packed_heads.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return attention.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = {}
wrong = {}
ordinary["1 x 4 x 256 x 64"] = error_of(*make((1, 4, 256, 64)))
ordinary["1 x 2 x 33 x 80"] = error_of(*make((1, 2, 33, 80)))
ordinary["few heads of 12 x 80"] = error_of(*make((1, 4, 12, 80)))
ordinary["same path, 64, bfloat16"] = error_of(*make((4, 9, 12, 64), torch.bfloat16))
ordinary["same path, 64"] = error_of(*make((4, 17, 12, 64)))
wrong["80"] = error_of(*make((4, 17, 12, 80)))
wrong["96"] = error_of(*make((1, 40, 16, 96), torch.float16))
for name, error in ordinary.items():
    print("right:", name, error)
for name, error in wrong.items():
    print("wrong:", name, error, "of the largest value")
fault = max(ordinary.values()) < 0.01 and min(wrong.values()) > 0.02
sys.exit(0 if fault else 1)
