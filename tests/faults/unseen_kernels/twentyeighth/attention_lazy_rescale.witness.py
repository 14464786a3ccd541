"""Shapes, dtypes, layouts and scores of all kinds."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_lazy_rescale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return attention.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


cases = []
for dtype in (torch.float32, torch.float16):
    for shape in ((1, 1, 1, 64), (2, 3, 65, 32), (1, 2, 33, 80), (1, 1, 257, 16), (1, 2, 127, 64)):
        q, k, v = inputs(shape, dtype)
        cases.append((q, k, v))
        cases.append((4 * q, 4 * k, v))
        cases.append((q - 2, k + 2, v))
        steep = torch.linspace(-3, 3, shape[2]).to(dtype)[:, None].expand(shape)  # scores that grow or fall
        cases.append((q * 0.1 + 2, steep, v))
        cases.append((q * 0.1 - 2, steep, v))
    q, k, v = (x.transpose(1, 2) for x in inputs((2, 50, 3, 32), dtype))
    cases.append((q, k, v))
    cases.append((q, k[:, :, :1].expand_as(k), v.flip(2)))
    cases.append((q, q, q))
limits = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
worst = max(error_of(inputs) / limits[inputs[0].dtype] for inputs in cases)

print("checked", len(cases), "inputs, worst error", worst)
sys.exit(0 if worst < 1 and len(cases) >= 24 else 1)
