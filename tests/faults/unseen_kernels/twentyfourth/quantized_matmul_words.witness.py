"""Shapes, dtypes and layouts that fit words and that don't, and the least and largest bytes."""

import importlib.util
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_words.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = quantized_matmul.reference(*map(wide, inputs))
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
    for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 4), (1, 129, 68), (65, 127, 128), (3, 31, 1028), (2, 70, 257), (5, 3, 0)):
        x = torch.randn(m, k).to(dtype)
        scale = ((torch.rand(n) + 0.5) / 127).to(dtype)
        big = torch.randint(-128, 128, (n + 1, k + 8), dtype=torch.int8)
        big[::2, ::3] = -128
        columns = torch.randint(-128, 128, (k, n), dtype=torch.int8)
        for weight in (big[:n, :k], big[1:, 4 : k + 4], big[:n, 1 : k + 1], big[:n, :k].contiguous(), columns.t()):
            error = difference(x, weight, scale)
            assert error < limit, (m, n, k, dtype, error)
            cases += 1
        error = difference(x.t().contiguous().t(), weight, torch.stack((scale, scale), 1)[:, 0])
        assert error < limit
print("right", cases, "cases")
