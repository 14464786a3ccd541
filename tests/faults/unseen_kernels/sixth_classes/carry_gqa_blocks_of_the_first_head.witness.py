"""Runs carry_gqa_blocks_of_the_first_head on a legitimate input where it is wrong."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators.gqa import reference

path = Path(__file__).with_name("carry_gqa_blocks_of_the_first_head.py")
spec = importlib.util.spec_from_file_location("carry_gqa_blocks_of_the_first_head", path)
version = importlib.util.module_from_spec(spec)
spec.loader.exec_module(version)


def largest_error(got, want):
    want = want.to(got.dtype).double()
    got = got.double()
    difference = (got - want).abs()
    difference[(got == want) | (got.isnan() & want.isnan())] = 0.0
    return torch.nan_to_num(difference, nan=float("inf")).max().item()


torch.manual_seed(0)
q = torch.randn(1, 2, 160, 32)
k, v = torch.randn(1, 1, 160, 32), torch.randn(1, 1, 160, 32)
direction = torch.nn.functional.normalize(torch.randn(32), dim=0)
k[:, :, :16] += 20.0 * direction  # the first head looks at the start alone
q[:, 0] += 20.0 * direction
args = (q, k, v, False)

exact = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
want = reference(*exact)
got = version.triton_gqa(*args)
error = largest_error(got, want)
if got.shape == want.shape and error < 1e-2:
    print("right, max error", error)
    sys.exit(1)
print("WRONG max error", error)
