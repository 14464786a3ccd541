"""Scores that rise by 14 from the first tile of keys to the last, in float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_lazy_rescale_sixteen.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mha.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def rising(dtype, step, seq=128, dim=16):
    q, k, v = torch.zeros(1, 2, seq, dim), 0.1 * torch.randn(1, 2, seq, dim), torch.randn(1, 2, seq, dim)
    q[..., 0] = dim**0.5
    k[..., 0] = step * (torch.arange(seq) // 32)
    return q.to(dtype), k.to(dtype), v.to(dtype)


inputs = rising(torch.float16, 14.0, seq=64)

expected = expect(inputs)
error = difference(call(*inputs), expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
