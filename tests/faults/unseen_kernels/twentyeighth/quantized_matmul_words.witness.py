"""Shapes, dtypes and layouts, all weights, k of all remainders."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_words.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return quantized_matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return quantized_matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


cases = []
for dtype in (torch.float32, torch.float16):
    for shape in ((1, 1, 1), (7, 5, 12), (17, 33, 1), (1, 129, 64), (65, 40, 130), (33, 64, 132), (3, 31, 259)):
        x, weight, scale = inputs(shape, dtype)
        cases += [(x, weight, scale), (x + 3, weight.T.contiguous().T, scale)]
    x, weight, scale = inputs((9, 256, 128), dtype)
    weight = (torch.arange(256)[:, None] + torch.arange(128)).to(torch.int8)  # -128 to 127
    wide_one = torch.cat([weight, weight[:, :7]], 1)
    cases += [(x, weight, scale), (x, torch.full_like(weight, -128), scale), (x, wide_one[:, :128], scale)]
    cases += [(x[:, :60], weight[:, 4:64], scale), (x[:, :60], weight[:, 3:63], scale), (x, weight[:1].expand(256, 128), scale)]
    cases += [(x[:, ::2], weight[:, ::2], scale), (x[:1].expand(9, 128), weight[::2], scale[::2])]
limits = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
worst = max(error_of(inputs) / limits[inputs[0].dtype] for inputs in cases)

print("checked", len(cases), "inputs, worst error", worst)
sys.exit(0 if worst < 1 and len(cases) >= 24 else 1)
