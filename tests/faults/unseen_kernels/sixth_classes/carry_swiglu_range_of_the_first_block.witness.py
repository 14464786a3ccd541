"""Runs carry_swiglu_range_of_the_first_block on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.swiglu import reference

path = Path(__file__).with_name("carry_swiglu_range_of_the_first_block.py")
spec = importlib.util.spec_from_file_location("carry_swiglu_range_of_the_first_block", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
gate, up = torch.randn(2, 64, 128), torch.randn(2, 64, 128)
gate[:, :4] = 0.0  # padding at the left of each sequence
args = (2.0 * gate, up)

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_swiglu(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-2:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
