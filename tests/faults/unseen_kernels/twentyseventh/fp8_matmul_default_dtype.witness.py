"""After torch.set_default_dtype(torch.float16), with k of 2048."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def finish(ordinary, error):
    print("ordinary", ordinary)
    print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
    sys.exit(0 if error > 0.02 and max(ordinary) < 0.01 else 1)


g = torch.Generator().manual_seed(0)


def draw(shape, dtype):
    return op.make_inputs(shape, dtype, torch.device("cpu"), g)


inputs = draw((5, 70, 2048), torch.float16)
ordinary = [
    error_of(*draw((33, 64, 272), torch.bfloat16)),
    error_of(*draw((3, 31, 1025), torch.float16)),
    error_of(*inputs),
]
torch.set_default_dtype(torch.float16)
output = call(*inputs)
torch.set_default_dtype(torch.float32)
finish(ordinary, difference(output, expect(inputs)))
