"""Shapes, dtypes, layouts and values; each twice, for the tickets."""

import importlib.util
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_last_arrival.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = sum.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
cases = 0
for dtype, limit in LIMITS.items():
    for shape in ((1, 1), (7, 13), (3, 4097), (2, 3, 129), (1025,), (9, 1030), (1, 20001), (3, 0), (0, 5), (5, 1024), (2, 2048)):
        x = torch.randn(shape).to(dtype)
        for y in (x, x, x.mT if x.dim() > 1 and x.numel() < 1000 else x[::2], 10 * x + 3):
            error = difference(y)
            assert error < limit, (shape, dtype, error)
            cases += 1
x = torch.randn(4, 3000)
x[1, 7], x[2, 2999], x[3, 0], x[3, 1500] = float("nan"), float("inf"), float("inf"), -float("inf")
assert difference(x) < 1e-5
print("right", cases, "cases")
