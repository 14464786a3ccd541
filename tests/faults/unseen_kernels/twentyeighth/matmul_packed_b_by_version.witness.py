"""A Triton kernel doubles a weight between two products with its transpose."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_packed_b_by_version.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places, mask=places < n)
    tl.store(x_ptr + places, 2 * x, mask=places < n)


a, weight = torch.randn(33, 70), torch.randn(50, 70)
ordinary = max(error_of(inputs(s, d)) for s in ((65, 127, 129), (64, 64, 64)) for d in (torch.float32, torch.float16))
ordinary = max(ordinary, error_of((a, weight.T)), error_of((a, weight.T)))
weight.mul_(-3)  # torch counts this write
ordinary = max(ordinary, error_of((a, weight.T)), error_of((a, torch.randn(50, 70).T)))
double_kernel[(triton.cdiv(weight.numel(), 1024),)](weight, weight.numel(), BLOCK=1024)
error = error_of((a, weight.T))
other = torch.randn(50, 70)
ordinary = max(ordinary, error_of((a, other.T)))
other.data.neg_()
print("after a write by .data", error_of((a, other.T)))

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
