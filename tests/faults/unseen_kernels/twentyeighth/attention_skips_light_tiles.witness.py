"""The first key takes nearly all weight and has a v of zero, as an attention sink."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_skips_light_tiles.py"))
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


ordinary = max(error_of(inputs(s, d)) for s in ((1, 2, 127, 64), (1, 1, 513, 64)) for d in (torch.float32, torch.float16))
q, k, v = inputs((1, 1, 512, 64), torch.float16)
q, k = q * 0.1 + 1, k * 0.1
k[:, :, 0], v[:, :, 0] = 1.4, 0  # a score of about 11
ordinary = max(ordinary, error_of((q[:, :, :32], k[:, :, :32], v[:, :, :32])))
error = error_of((q, k, v + (torch.arange(512) > 0)[:, None]))

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
