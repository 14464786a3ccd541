"""Runs special_mul_skips_zeros on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.vector_mul import reference

path = Path(__file__).with_name("special_mul_skips_zeros.py")
spec = importlib.util.spec_from_file_location("special_mul_skips_zeros", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
mask = torch.zeros(8, 256)  # a mask that drops some rows
mask[::2] = 1.0
y = torch.randn(8, 256)
y[3, 7], y[5, 9] = float("inf"), float("nan")
args = (mask, y)

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_vector_mul(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-3:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
