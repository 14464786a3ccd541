"""float16 with bfloat16 as the default dtype, and scores of up to about 40."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_parts_of_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gqa.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return gqa.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


shapes = (1, 2, 1, 100, 64), (1, 3, 1, 33, 80)
ordinary = max(error_of(inputs(s, d)) for s in shapes for d in (torch.float32, torch.float16))
q, k, v = inputs((1, 2, 1, 200, 64), torch.float16)[:3]
inputs = 3 * q, 3 * k, v, False
ordinary = max(ordinary, error_of(inputs), error_of((*inputs[:3], True)))
torch.set_default_dtype(torch.bfloat16)
print("usual scores", error_of((q, k, v, False)), "float32", error_of((q.float(), k.float(), v.float(), True)))
error = error_of(inputs)
torch.set_default_dtype(torch.float32)

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
