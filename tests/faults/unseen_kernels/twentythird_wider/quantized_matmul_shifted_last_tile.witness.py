"""1000 rows of weight, k = 1024."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_shifted_last_tile.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
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
    "n a multiple": make((16, 256, 1024)),
    "k short": make((1, 1000, 257)),
    "n small": make((3, 31, 1025)),
    "one tile": make((5, 32, 2000), F16),
    "many rows": make((65, 127, 129)),
}
faults = {"split": make((4, 1000, 1024)), "split, half": make((16, 100, 512), F16)}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
