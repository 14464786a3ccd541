"""Runs layout_rope_one_head_stride on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.rope import reference

path = Path(__file__).with_name("layout_rope_one_head_stride.py")
spec = importlib.util.spec_from_file_location("layout_rope_one_head_stride", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
# as a projection gives it: [batch, seq, heads, dim], seen as [batch, heads, seq, dim]
x = torch.randn(2, 24, 3, 32).transpose(1, 2)
angles = torch.arange(24.0)[:, None] * 0.5 ** torch.arange(16.0)
args = (x, angles.cos(), angles.sin())

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_rope(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-3:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
