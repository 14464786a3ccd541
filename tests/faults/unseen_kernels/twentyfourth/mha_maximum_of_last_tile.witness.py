"""140 heads; the first eight have queries a hundred times as large as the others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_maximum_of_last_tile.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = mha.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(heads, seq, dim=16):
    return [torch.randn(1, heads, seq, dim) for _ in range(3)]


ordinary = max(difference(*inputs(*size), causal) for size in ((2, 127), (140, 5), (3, 257)) for causal in (False, True))
q, k, v = inputs(140, 4)
q[:, :8] *= 100.0
error = difference(q, k, v, True)
ordinary = max(ordinary, difference(q[:, :130], k[:, :130], v[:, :130], True))  # as large, in fewer heads

print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and ordinary < 1e-05 else 1)
