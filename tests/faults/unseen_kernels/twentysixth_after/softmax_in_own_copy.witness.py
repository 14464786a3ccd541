"""Some columns of a tensor: the call is right, but has changed its input."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_in_own_copy.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


x = torch.randn(6, 40, 100)
usual = max(
    show("contiguous", error_of(x)), show("permuted", error_of(x.transpose(0, 1))),
    show("every second column", error_of(torch.randn(30, 100)[:, ::2])),
    show("transposed", error_of(torch.randn(70, 30).t())),
    show("long rows", error_of(torch.randn(3, 4097))),
)
logits = torch.randn(16, 128)
part = logits[:, :100]
inputs = (part.clone(),)
usual = max(usual, show("first 100 columns, the output", difference(call(part), expect(inputs))))
error = show("first 100 columns, the input after the call", difference(part, inputs[0].double()))
row = torch.randn(1, 100).expand(8, 100)
inputs = (row.clone(),)
show("one row, expanded, the output", difference(call(row), expect(inputs)))

print("WRONG" if usual < 1e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
