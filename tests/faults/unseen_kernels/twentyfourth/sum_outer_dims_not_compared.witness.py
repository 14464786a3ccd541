
import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_outer_dims_not_compared.py"))
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


x = torch.randn(4, 3, 5, 17)
ordinary = max(
    difference(y)
    for y in (x, x[0], x[0, 0], x[0].transpose(0, 1), x[:, 0], x[:, :, 1:3], x.transpose(1, 2), x.mT, x[..., ::2], x[1:])
)
error = difference(x[:, :2])

print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.05 and ordinary < 1e-05 else 1)
