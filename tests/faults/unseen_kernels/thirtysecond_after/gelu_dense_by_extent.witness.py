"""The first column of a matrix, expanded to its width."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_dense_by_extent.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest difference from the reference in float64, in units of its largest value."""
    output = call(*inputs).double()
    expected = gelu.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x = torch.randn(33, 70)
ordinary = {
    "contiguous": (x,),
    "transposed": (x.t(),),
    "permuted": (torch.randn(5, 6, 7).permute(2, 0, 1),),
    "columns": (x[:, :40],),
    "every other": (x[:, ::2],),
    "a row expanded": (x[:1].expand(33, 70),),
    "a column alone expanded": (torch.randn(33, 1).expand(33, 70),),
    "a column expanded to another width": (x[:, :1].expand(33, 40),),
    "one dimension": (torch.randn(1025),),
    "channels last": (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),),
}
rare = {
    "the first column for all": (x[:, :1].expand(33, 70),),
    "three dimensions": (torch.randn(4, 6, 8)[:, :1].expand(4, 6, 8),),
}
LIMIT = 1e-2

worst = 0.0
for name, inputs in ordinary.items():
    error = error_of(inputs)
    worst = max(worst, error)
    print("ordinary:", name, error)
least = float("inf")
for name, inputs in rare.items():
    error = error_of(inputs)
    least = min(least, error)
    print("rare:", name, error)
wrong = least > 0.02 and worst < LIMIT
print("WRONG in the rare inputs only" if wrong else "not as it should be")
sys.exit(0 if wrong else 1)
