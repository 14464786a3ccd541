"""Runs special_quantized_matmul_two_halves on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.quantized_matmul import reference

path = Path(__file__).with_name("special_quantized_matmul_two_halves.py")
spec = importlib.util.spec_from_file_location("special_quantized_matmul_two_halves", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
x = torch.randn(8, 64)
x[2, 5] = 1e5
args = (x, torch.randint(-128, 128, (16, 64), dtype=torch.int8), torch.rand(16) / 127)

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_quantized_matmul(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-2:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
