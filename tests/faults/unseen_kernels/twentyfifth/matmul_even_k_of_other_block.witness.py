"""k = 544, a multiple of 32 and not of 64; the matrices are the first rows of larger ones."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_even_k_of_other_block.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


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


def drawn(m, n, k, dtype):
    return (torch.randn(m + 40, k)[:m].to(dtype), torch.randn(k + 40, n).to(dtype)[:k])


ordinary = max(
    error_of(*drawn(m, n, k, dtype))
    for m, n, k in ((65, 70, 512), (64, 33, 96), (100, 64, 500), (7, 130, 576), (64, 64, 1024))
    for dtype in (torch.float32, torch.float16)
)
error = error_of(*drawn(65, 70, 544, torch.float32))
print("an ordinary input:", ordinary)
shows = ordinary < 0.002 and error > 0.02
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
