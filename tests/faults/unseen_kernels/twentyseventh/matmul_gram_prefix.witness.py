"""The products of the first 40 rows with all 100 rows: x[:40] @ x.T."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_gram_prefix.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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


x = torch.randn(100, 70)
ordinary = [
    error_of(torch.randn(65, 127), torch.randn(127, 129)),
    error_of(x, x.T),
    error_of(x.half(), x.half().T.contiguous()),
    error_of(x[:, :70][:70], x[:, :70][:70]),
]
finish(ordinary, error_of(x[:40], x.T))
