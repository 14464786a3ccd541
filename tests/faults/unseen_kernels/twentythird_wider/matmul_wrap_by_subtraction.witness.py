"""A tall product: 600 by 100."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_wrap_by_subtraction.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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


usual = {
    "square": make((256, 256, 64)),
    "odd": make((257, 131, 101)),
    "flat": make((65, 300, 40), F16),
    "two rows of tiles": make((129, 1, 64)),
    "tall, one column more": make((500, 192, 32)),
}
a, b = make((600, 100, 48))
faults = {"tall": (a + 3, b + 3), "tall, half": tuple(x.half() + 3 for x in (a, b))}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
