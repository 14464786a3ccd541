"""Shapes, strides, dtypes, both signs of NaN, zeros, infinities and subnormals."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_sign_bit_and_nan_right.py"))
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


cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (127, 129), (1000, 1))]
nan = torch.tensor(float("nan"))
special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), 1e-40, -1e-40, 3e38, -3e38, 6e-8, -6e-8])
special = torch.cat([special, torch.stack([nan, -nan, special[2] - special[2]])])
special_bits = torch.tensor([0x7F800001, -0x7FFFFF, -1, 0x7FFFFFFF], dtype=torch.int32).view(torch.float32)
cases += [(torch.cat([special, special_bits]).repeat(9),), (torch.randn(64, 33).t(),), (torch.randn(8, 1, 40).expand(8, 3, 40),)]
cases += [(x.half(),) for (x,) in cases] + [(x.bfloat16(),) for (x,) in cases]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    kind = next(x.dtype for x in inputs if torch.is_tensor(x) and x.is_floating_point())
    allowed = {torch.float16: 4e-3, torch.bfloat16: 2e-2}.get(kind, 5e-5)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
