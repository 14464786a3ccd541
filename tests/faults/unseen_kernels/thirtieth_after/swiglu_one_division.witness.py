"""Float16: gate is about -9, up about 10,000; the result is about -10."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_one_division.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs, rows=None):
    """Return the largest error, of the largest expected value; of the rows given."""
    output, expected = call(*inputs).double(), op.reference(*map(wide, inputs)).double()
    assert output.shape == expected.shape
    if rows is not None:
        output, expected = output[rows], expected[rows]
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def draw(*shape, dtype=torch.float32):
    return [torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)]


ordinary = max(difference(draw(*s, dtype=d)) for s in ((7, 13), (3, 1025), (2, 3, 129)) for d in
               (torch.float32, torch.float16, torch.bfloat16))
error = difference([(-9 - torch.rand(4, 300)).half(), (1e4 * (1 + torch.rand(4, 300))).half()])

print("ordinary:", ordinary, "fault:", error, "of the largest value")
shows = ordinary < 0.01 and error > 0.1
print("WRONG" if shows else "not shown")
sys.exit(0 if shows else 1)
