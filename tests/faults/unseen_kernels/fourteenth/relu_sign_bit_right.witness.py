"""NaN of both signs, infinities, zeros, shapes, views and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_sign_bit_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return relu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ALLOWED = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}

cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (257, 33))]
special = torch.randn(8, 64)
special[3] = torch.copysign(torch.full((64,), float("nan")), torch.tensor(-1.0))
special[4] = torch.copysign(torch.full((64,), float("nan")), torch.tensor(1.0))
special[5, :4] = torch.tensor([float("inf"), -float("inf"), 0.0, -0.0])
cases += [(special,), (special.half(),), (special.bfloat16(),), (-special,), (special.t(),), (1e-42 * torch.randn(9, 9),)]
cases += [(torch.randn(33, 257).half(),), (torch.randn(33, 257).bfloat16(),), (torch.randn(6, 8)[:, ::2],)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtype = next(x.dtype for x in inputs if torch.is_tensor(x) and x.dtype in ALLOWED)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / ALLOWED[dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
