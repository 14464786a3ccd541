"""y holds the even elements of a buffer, x the odd ones; alpha 0.5."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_interleaved_either_order.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)
g = torch.Generator().manual_seed(0)
cpu = torch.device("cpu")
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def wide(x):
    floating = torch.is_tensor(x) and x.is_floating_point()
    return x.double() if floating else x


def difference(inputs):
    expected = op.reference(*map(wide, inputs)).double()
    output = call(*inputs)
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-30)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=F32):
    return op.make_inputs(shape, dtype, cpu, g)


buffer = torch.randn(33, 2 * 129)
even, odd = buffer[:, 0::2], buffer[:, 1::2]
usual = {
    "two tensors": make((127, 129)),
    "x first": (even, odd, 0.5),
    "y first, alpha 1": (odd, even, 1.0),
    "same tensor": (even, even, -2.0),
}
faults = {"y first": (odd, even, 0.5), "y first, half": (odd.half(), even.half(), 0.5)}
pair = torch.randn(1000, 2).half()
faults["y first, half"] = (pair[:, 1], pair[:, 0], -2.0)

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
