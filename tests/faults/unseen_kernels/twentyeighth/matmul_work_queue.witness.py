"""Shapes, dtypes and layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_work_queue.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


cases = []
for dtype in (torch.float32, torch.float16):
    for shape in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (3, 31, 1025)):
        a, b = inputs(shape, dtype)
        cases += [(a, b), (a.T.contiguous().T, b.T.contiguous().T), (a, b.T.contiguous().T), (a.T.contiguous().T, b)]
    x = inputs((40, 40, 40), dtype)[0]
    cases += [(x, x), (x, x.T), (x[::2], x[:20].T), (x[:1].expand(30, 40), x), (x[:, ::2], x[::2])]
limits = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
worst = max(error_of(inputs) / limits[inputs[0].dtype] for inputs in cases)

print("checked", len(cases), "inputs, worst error", worst)
sys.exit(0 if worst < 1 and len(cases) >= 24 else 1)
