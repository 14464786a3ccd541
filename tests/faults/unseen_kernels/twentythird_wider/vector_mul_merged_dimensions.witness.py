"""Columns cut from a matrix: [n, 1] with strides [m, 1]; the middle dimension cut to one."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_merged_dimensions.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
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


wide_x, wide_y = torch.randn(1000, 5), torch.randn(1000, 5)
cube_x, cube_y = torch.randn(5, 3, 7), torch.randn(5, 3, 7)
usual = {
    "random": make((127, 129)),
    "one column": make((1000, 1)),
    "one row": make((1, 1000), F16),
    "transposed": (wide_x.T, wide_y.T),
    "x transposed": (torch.randn(33, 65).T, torch.randn(65, 33)),
    "padded rows": (wide_x[:, :3], wide_y[:, :3]),
    "cube": (cube_x.permute(2, 0, 1), cube_y.permute(2, 0, 1)),
    "cube, a dimension of one": (torch.randn(5, 1, 9)[..., :7], torch.randn(5, 1, 7)),
    "expanded": (torch.randn(5, 1, 7).expand(5, 3, 7), cube_y),
}
faults = {
    "column of a matrix": (wide_x[:, :1], wide_y[:, 2:3]),
    "middle cut to one": (cube_x[:, :1], torch.randn(5, 1, 7)),
}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
