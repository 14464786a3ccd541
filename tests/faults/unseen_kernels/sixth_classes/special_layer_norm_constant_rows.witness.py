"""Runs special_layer_norm_constant_rows on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.layer_norm import reference

path = Path(__file__).with_name("special_layer_norm_constant_rows.py")
spec = importlib.util.spec_from_file_location("special_layer_norm_constant_rows", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
x = torch.randn(8, 100)
x[2] = float("inf")
x[5] = 1.5
x[5, 7] = float("nan")
args = (x, torch.randn(100), torch.randn(100), 1e-5)

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_layer_norm(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-3:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
