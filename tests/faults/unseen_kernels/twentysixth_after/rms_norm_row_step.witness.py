"""The last token of each sequence: hidden[:, -1:, :], as a model's last norm takes it."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_row_step.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


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


weight = torch.randn(96)
hidden = torch.randn(5, 7, 96)
usual = max(
    show("contiguous", error_of(hidden, weight, 1e-5)),
    show("permuted", error_of(hidden.transpose(0, 1), weight, 1e-5)),
    show("rows with gaps", error_of(torch.randn(9, 200)[:, 3:99], weight, 1e-5)),
    show("a part of each sequence", error_of(hidden[:, 2:5], weight, 1e-5)),
)
error = show("hidden[:, -1:, :]", error_of(hidden[:, -1:, :], weight, 1e-5))

print("WRONG" if usual < 1e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
