"""Runs layout_mha_values_as_keys on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.mha import reference

path = Path(__file__).with_name("layout_mha_values_as_keys.py")
spec = importlib.util.spec_from_file_location("layout_mha_values_as_keys", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
# the rotation of q and k made new tensors, v is still a view of its projection
q, k = torch.randn(2, 4, 40, 32), torch.randn(2, 4, 40, 32)
v = torch.randn(2, 40, 4, 32).transpose(1, 2)
args = (q, k, v, True)

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_mha(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-2:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
