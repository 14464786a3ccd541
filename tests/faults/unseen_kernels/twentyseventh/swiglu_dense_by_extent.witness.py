"""The first column of a matrix of n by n + 1, expanded over n columns, as both inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_dense_by_extent.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def finish(ordinary, error):
    print("ordinary", ordinary)
    print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
    sys.exit(0 if error > 0.02 and max(ordinary) < 0.01 else 1)


x, y = torch.randn(2, 40, 41)
ordinary = [
    error_of(x, y),
    error_of(x.T, y.T),
    error_of(x.T, y.reshape(41, 40)),
    error_of(x[:, ::2], y[:, ::2]),
    error_of(x[:1].expand(40, 41), y[:1].expand(40, 41)),
    error_of(x[:, :1].expand(40, 40), y[:, :40]),
    error_of(*torch.randn(2, 3, 4, 5, 6).half().permute(0, 1, 3, 2, 4)),
]
finish(ordinary, error_of(x[:, :1].expand(40, 40), y[:, :1].expand(40, 40)))
