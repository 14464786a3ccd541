"""Gates of about -18 with values of a million in up."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_up_not_read.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


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


gate, up = torch.randn(20, 300), torch.randn(20, 300)
usual = max(
    show("usual", error_of(gate, up)), show("closed gates", error_of(gate * 5 - 5, up)),
    show("large up", error_of(gate, up * 1e6)),
    show("a closed row", error_of(torch.where(torch.arange(20)[:, None] == 3, -30.0, gate), up)),
)
error = show("closed gates, large up", error_of(gate * 0.3 - 18, up * 1e6))

print("WRONG" if usual < 1e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
