"""Shapes, dtypes and layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_heads_in_one_program.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = rope.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


errors = []
shapes = (
    (1, 1, 1, 1), (1, 1, 7, 13), (1, 2, 127, 32), (2, 3, 65, 16), (1, 1, 129, 64), (3, 1, 257, 8),
    (1, 1, 1023, 5), (3, 9, 33, 40), (1, 2, 5, 100),
)
for shape in shapes:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        errors.append(error_of(*rope.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator())))
    x, cos, sin = rope.make_inputs(shape, torch.float32, torch.device("cpu"), torch.Generator())
    interleaved = x.transpose(1, 2).contiguous().transpose(1, 2)
    both = torch.cat([cos, sin], dim=-1)
    errors.append(error_of(interleaved, cos, both[:, cos.shape[1] :]))
    errors.append(error_of(x[:1, :1].expand_as(x), cos.T.contiguous().T, sin))
    errors.append(error_of(x.transpose(0, 1).contiguous().transpose(0, 1), sin[:1].expand_as(sin), cos))

worst = max(errors)
print(len(errors), "inputs, largest error", worst)
sys.exit(0 if worst < 0.01 else 1)
