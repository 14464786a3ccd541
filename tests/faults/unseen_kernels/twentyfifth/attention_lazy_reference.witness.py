"""Float16: the keys from the second tile on have scores 14 above those of the first."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_lazy_reference.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def inputs_of(dtype):
    q = torch.full((1, 2, 96, 64), 1.0) + 0.05 * torch.randn(1, 2, 96, 64)
    k = 0.05 * torch.randn(1, 2, 96, 64)
    k[:, :, 32:] += 14 * 8 / 64
    return q.to(dtype), k.to(dtype), torch.randn(1, 2, 96, 64).to(dtype)


ordinary = max(
    error_of(*(torch.randn(1, 2, n, d, dtype=t) for _ in range(3)))
    for t in (torch.float16, torch.float32) for n, d in ((96, 64), (129, 80))
)
same_in_float32 = error_of(*inputs_of(torch.float32))
error = error_of(*inputs_of(torch.float16))
print("the same in float32", same_in_float32)
print("an ordinary input:", ordinary)
shows = ordinary < 0.005 and error > 0.05
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
