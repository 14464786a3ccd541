"""Odd and even numbers of tiles, with and without the mask, dtypes and layouts."""

import importlib.util
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_pairs_backwards.py"))
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


LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3}  # the interpreter multiplies no bfloat16 in tl.dot
cases = 0
for dtype, limit in LIMITS.items():
    for batch, heads, seq, dim in (
        (1, 1, 1, 64), (1, 1, 7, 64), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80), (1, 1, 257, 16), (1, 1, 64, 16), (1, 1, 200, 16),
        (1, 1, 35, 160), (0, 1, 5, 16),
    ):
        q, k, v = (torch.randn(batch, heads, seq, dim).to(dtype) for _ in range(3))
        qkv = torch.randn(batch, seq, 3, heads, dim).to(dtype).permute(2, 0, 3, 1, 4)
        for case in ((q, k, v), tuple(qkv), (4 * q, 4 * k, v)):
            for causal in (False, True):
                error = difference(*case, causal)
                assert error < limit, (batch, heads, seq, dim, dtype, error)
                cases += 1
print("right", cases, "cases")
