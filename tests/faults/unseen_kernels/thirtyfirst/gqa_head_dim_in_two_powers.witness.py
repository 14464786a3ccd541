"""A head_dim of 112."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_head_dim_in_two_powers.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = gqa.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for heads, kv_heads, seq, d in (
    (2, 1, 7, 64), (6, 2, 65, 96), (4, 2, 33, 80), (2, 2, 40, 16), (4, 2, 33, 160), (2, 1, 17, 256),
    (2, 1, 17, 192), (2, 1, 33, 40), (2, 1, 33, 72), (2, 1, 9, 5),
):
    for is_causal in (False, True):
        q = torch.randn(2, heads, seq, d)
        k, v = (torch.randn(2, kv_heads, seq, d) for _ in range(2))
        ordinary = max(ordinary, error_of(q, k, v, is_causal))

q = torch.randn(1, 4, 65, 112)
k, v = (torch.randn(1, 2, 65, 112) for _ in range(2))
error = error_of(q, k, v, True)

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
