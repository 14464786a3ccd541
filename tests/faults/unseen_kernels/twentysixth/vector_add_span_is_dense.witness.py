"""A column of a matrix of 6 columns, expanded to 5 x 5: strides (0, 6), a span of 25 places."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_span_is_dense.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


usual = torch.randn(64, 50).t(), torch.randn(64, 50).t(), 0.5
ordinary = difference(call(*usual), expect(usual))
usual = torch.randn(64, 50), torch.randn(64, 50).t().contiguous().t(), 0.5
ordinary = max(ordinary, difference(call(*usual), expect(usual)))
usual = torch.randn(50).expand(64, 50), torch.randn(50).expand(64, 50), -2.0
ordinary = max(ordinary, difference(call(*usual), expect(usual)))

a, b = torch.randn(5, 6), torch.randn(5, 6)
inputs = a[:, 0].expand(5, 5), b[:, 0].expand(5, 5), 0.5
error = difference(call(*inputs), expect(inputs))
# Strides (3, 14): a span of 256 places, of which some are used twice and some never.
rows = torch.randn(2, 4096)
inputs = *(r.as_strided((16, 16), (3, 14)) for r in rows), 0.1
error = min(error, difference(call(*inputs), expect(inputs)))

print("ordinary", ordinary, "and here", error, "of the largest value")
shown = ordinary < 2e-05 and error > 0.05
print("WRONG as expected" if shown else "the fault does not show")
sys.exit(0 if shown else 1)
