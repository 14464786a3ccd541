"""The keys of the first head stand for all heads (an expanded view), the values are the whole tensor."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_shared_kv_by_address.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = gqa.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def normal(heads, seq=65, dim=32):
    return torch.randn(2, heads, seq, dim)


ordinary = max(difference(normal(6), normal(3), normal(3), causal) for causal in (False, True))
both = normal(3)
ordinary = max(ordinary, difference(normal(6), both, both, True))  # the same tensor, which is right
error = difference(normal(6), both[:, :1].expand(-1, 3, -1, -1), both)
square = normal(1, 32, 32)
print("keys are the transpose of the values:", difference(normal(2, 32, 32), square.mT, square))

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 1e-05 else 1)
