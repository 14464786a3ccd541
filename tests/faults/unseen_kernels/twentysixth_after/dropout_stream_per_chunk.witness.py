"""The masks of the seeds 4 and 5 have the same chunks of 2,048 elements, each two exchanged."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_stream_per_chunk.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return dropout.reference(*map(wide, inputs))


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


n = 16 * 2048
x = torch.randn(n)
faults = [dropout.check((x, p, seed), call(x, p, seed)) for p in (0.3, 0.5) for seed in (0, 5)]
print("each mask by itself:", faults)
usual = show("p = 0", difference(call(x, 0.0, 5), expect((x, 0.0, 5))))
one, other = (call(torch.ones(n), 0.3, seed) != 0 for seed in (4, 5))
exchanged = other.view(-1, 2, 2048).flip(1).flatten()
near = float((one == other).float().mean())
share = float((one == exchanged).float().mean())
print("share of equal places", near, "and with chunks exchanged", share, "- should be 0.58 both")
wrong = faults == [None] * 4 and usual < 1e-6 and share == 1.0 and abs(near - 0.58) < 0.02
print("WRONG" if wrong else "right")
sys.exit(0 if wrong else 1)
