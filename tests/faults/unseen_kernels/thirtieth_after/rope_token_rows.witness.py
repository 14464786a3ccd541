"""The first 33 of 40 tokens of a buffer [batch, seq, heads, d], two batches."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_token_rows.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
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

def draw(shape, dtype=torch.float32):
    return list(op.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(1)))


def tokens(x, more=0):
    """Return x with its heads side by side, in a buffer of more tokens."""
    b, h, s, d = x.shape
    buffer = torch.randn(b, s + more, h, d).to(x.dtype)
    buffer[:, :s] = x.transpose(1, 2)
    return buffer[:, :s].transpose(1, 2)


ordinary = max(difference(draw(s, d)) for s in ((2, 3, 33, 16), (1, 1, 7, 13), (1, 2, 20, 40)) for d in
               (torch.float32, torch.float16, torch.bfloat16))
x, cos, sin = draw((2, 3, 33, 16))
fused = torch.randn(2, 33, 9, 32)[:, :, 3:6].transpose(1, 2)
padded = torch.randn(2, 3, 40, 40)[:, :, :33, :32]
ordinary = max(ordinary, difference((tokens(x), cos, sin)), difference((fused, cos, sin)),
               difference((padded, cos, sin)), difference((tokens(x[:1], 7), cos, sin)))
error = difference((tokens(x, 7), cos, sin))

print("ordinary:", ordinary, "fault:", error, "of the largest value")
shows = ordinary < 0.01 and error > 0.1
print("WRONG" if shows else "not shown")
sys.exit(0 if shows else 1)
