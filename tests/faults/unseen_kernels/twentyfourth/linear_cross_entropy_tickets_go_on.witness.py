"""A call with 1,000 classes, then one with 5,000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_tickets_go_on.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = linear_cross_entropy.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(rows, classes, hidden):
    weight = torch.randn(classes, hidden) / hidden**0.5
    return torch.randn(rows, hidden), weight, torch.randint(classes, (rows,))


many = inputs(7, 5000, 16)
ordinary = max(difference(*case) for case in (many, many, inputs(65, 127, 129), inputs(3, 300, 31)))
ordinary = max(ordinary, difference(*inputs(3, 1000, 31)))
x, weight, target = inputs(7, 5000, 16)
error = difference(4 * x, weight, target)  # other values than those that may still lie in the memory

print("ordinary", ordinary)
print("WRONG" if error > 0.01 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.01 and ordinary < 1e-05 else 1)
