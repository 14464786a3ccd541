"""NaN of both signs, infinities, zeros, the smallest and the largest values, in each dtype."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_by_bits_right.py"))
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


special = torch.tensor([float("nan"), -float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, -1e-45, 1e-38, -1e-38, 3e38, -3e38])
special = torch.cat([special, special.view(torch.int32)[:2].bitwise_xor(-(2**31)).view(torch.float32)])
cases = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    cases += [(torch.randn(s).to(dtype),) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (100, 1))]
    x = torch.randn(33, 70).to(dtype)
    x[4, 10 : 10 + len(special)] = special.to(dtype)
    x[32, 70 - len(special) :] = special.to(dtype)
    cases += [(x,), (x.t(),), (x[:, ::2],), (special.to(dtype),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
