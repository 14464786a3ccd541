"""Float32: the last rows of a are 1e7 times as large as the first."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_strassen.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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

def draw(m, n, k, dtype=torch.float32):
    return [torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)]


ordinary = max(difference(draw(*s)) for s in ((64, 64, 64), (128, 70, 256), (130, 66, 98), (65, 33, 17)))
half = max(difference(draw(64, 64, 64, d)) for d in (torch.float16,))
assert half < 0.005, half
inputs = draw(128, 128, 128)
inputs[0][64:] *= 1e7
error = difference(inputs, slice(0, 64))

print("ordinary:", ordinary, "fault:", error, "of the largest value")
shows = ordinary < 1e-06 and error > 0.01
print("WRONG" if shows else "not shown")
sys.exit(0 if shows else 1)
