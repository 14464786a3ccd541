"""Ordinary products, a times its transpose, and what only looks like it."""

import importlib.util
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_mirrored_product.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = matmul.reference(*map(wide, inputs))
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
    for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (65, 127, 129), (200, 200, 40), (5, 6, 0)):
        a = torch.randn(m, k).to(dtype)
        square = torch.randn(m, m).to(dtype)
        columns = torch.randn(k, m).to(dtype)
        shared = torch.randn(m + 1, k + 1).to(dtype)
        row = torch.randn(1, k).to(dtype).expand(m, k)
        for pair in (
            (a, torch.randn(k, n).to(dtype)), (a, a.mT), (a.mT, a), (square, square), (square, square.mT), (columns.mT, columns),
            (a, a.mT[:, : m // 2 + 1]), (shared[:m, :k], shared[:m, :k].mT), (shared[:m, :k], shared[1:, :k].mT), (row, row.mT),
        ):
            error = difference(*pair)
            assert error < limit, (m, n, k, dtype, error)
            cases += 1
print("right", cases, "cases")
