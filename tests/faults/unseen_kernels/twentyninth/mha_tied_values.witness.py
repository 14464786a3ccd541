"""v is the first head of k expanded to all heads; v is k transposed, where seq is head_dim."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_tied_values.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    """Return the largest error, as a part of the largest expected value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs()
    size = size.max().clamp(min=1e-300) if size.numel() else 1.0
    return float(error.masked_fill(same, 0.0).max() / size) if error.numel() else 0.0


def error_of(*inputs):
    expected = mha.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)


def draw(*shape):
    return [torch.randn(shape) for _ in range(3)]


q, k, v = draw(2, 3, 64, 64)
ordinary = max(
    error_of(q, k, v, False), error_of(q, k, v, True), error_of(q, k, k, True), error_of(q, q, q, False),
    error_of(*draw(1, 2, 33, 80), True), error_of(*(x.transpose(1, 2) for x in draw(1, 50, 3, 32)), False),
)
print("v = k transposed:", error_of(q, k, k.transpose(-1, -2), False))
error = error_of(q, k, k[:, :1].expand_as(k), False)

print("ordinary error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 1e-05 and error > 0.02 else 1)
