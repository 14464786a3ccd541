"""Three sequences of a cache of 2 ** 32 float16: few elements, but the third begins past what 32 bits count."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_index_by_numel.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = rope.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def table(seq, half):
    angles = torch.arange(seq)[:, None] * 10_000.0 ** -(torch.arange(half) / half)
    return angles.cos().half(), angles.sin().half()


ordinary = difference(torch.randn(2, 3, 65, 32).half(), *table(65, 16))
ordinary = max(ordinary, difference(torch.randn(2, 65, 3, 32).half().transpose(1, 2), *table(65, 16)))
cache = torch.empty(2**32 + 2**16, dtype=torch.float16)  # 8.6 GB, of which a few pages are touched
x = cache.as_strided((3, 2, 8, 64), (2**31 - 4096, 512, 64, 1), 16384)
x.copy_(torch.randn(3, 2, 8, 64))
assert x.numel() < 4000
error = difference(x, *table(8, 32))

print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and ordinary < 0.002 else 1)
