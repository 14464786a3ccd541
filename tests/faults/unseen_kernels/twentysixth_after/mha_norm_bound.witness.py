"""q and k four times as large as usual."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_norm_bound.py"))
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
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


q, k, v = (torch.randn(1, 2, 70, 64) for _ in range(3))
usual = max(
    show("usual", error_of(q, k, v, False)), show("causal", error_of(q, k, v, True)),
    show("twice as large", error_of(2 * q, 2 * k, v, True)),
    show("head_dim 80", error_of(*(torch.randn(1, 1, 33, 80) for _ in range(3)), False)),
    show("large v", error_of(q, k, v * 100, True)),
)
error = show("four times as large", error_of(4 * q, 4 * k, v, False))

print("WRONG" if usual < 2e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 2e-05 and error > 0.02 else 1)
