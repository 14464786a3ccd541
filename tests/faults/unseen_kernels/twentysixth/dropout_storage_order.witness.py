"""One x with one seed in two layouts, contiguous and transposed: two masks."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_storage_order.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return dropout.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x = torch.randn(60, 90)
y = call(x, 0.25, 7)
ordinary = difference(y, torch.where(y != 0, x.double() / 0.75, 0.0))
assert abs(float((y != 0).double().mean()) - 0.75) < 0.03
assert torch.equal(y, call(x, 0.25, 7)) and not torch.equal(y, call(x, 0.25, 8))
ordinary = max(ordinary, difference(call(x[:, ::2], 0.25, 7), call(x[:, ::2].contiguous(), 0.25, 7).double()))

transposed = x.t().contiguous().t()
assert torch.equal(x, transposed)
other = call(transposed, 0.25, 7)
assert difference(other, torch.where(other != 0, x.double() / 0.75, 0.0)) < 1e-6  # a mask, but another one
error = difference(other, y.double())
print("masks differ in", float(((other != 0) != (y != 0)).double().mean()), "of the elements")

print("ordinary", ordinary, "and here", error, "of the largest value")
shown = ordinary < 2e-05 and error > 0.05
print("WRONG as expected" if shown else "the fault does not show")
sys.exit(0 if shown else 1)
