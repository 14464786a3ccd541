"""Two by two tiles, five blocks of k."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_two_parts.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return fp8_matmul.reference(*map(wide, inputs))


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


def inputs(m, n, k):
    return fp8_matmul.make_inputs((m, n, k), torch.float16, torch.device("cpu"), torch.Generator().manual_seed(1))

shapes = [(1, 1, 1), (7, 5, 13), (65, 127, 129), (33, 64, 272), (128, 128, 256), (3, 31, 1025), (100, 90, 384)]
usual = max(show(str(shape), error_of(*inputs(*shape))) for shape in shapes)
error = show("(100, 90, 320)", error_of(*inputs(100, 90, 320)))

print("WRONG" if usual < 0.002 and error > 0.02 else "right")
sys.exit(0 if usual < 0.002 and error > 0.02 else 1)
