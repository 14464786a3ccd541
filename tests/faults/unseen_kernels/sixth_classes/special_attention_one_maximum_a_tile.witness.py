"""Runs special_attention_one_maximum_a_tile on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.attention import reference

path = Path(__file__).with_name("special_attention_one_maximum_a_tile.py")
spec = importlib.util.spec_from_file_location("special_attention_one_maximum_a_tile", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
q, k, v = (torch.randn(1, 2, 40, 32) for _ in range(3))
q[:, :, 3] *= 200.0
args = (q, k, v)

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_attention(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-3:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
