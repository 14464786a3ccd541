"""A vector that is expanded to 4 rows; the first row of the result is set to 7."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_expanded_result.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
usual = max(compare(torch.randn(s)) for s in ((7, 13), (1025,), (2, 3, 129), (257, 1023)))
usual = max(usual, compare(torch.randn(300).expand(4, 300)), compare(torch.randn(300, 1).expand(300, 5)))
x = torch.randn(300).expand(4, 300)
output, expected = call(x), expect((x,))
output[0].fill_(7.0)
expected[0].fill_(7.0)
error = difference(output, expected)

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
