"""Both signs of NaN, infinities, zeros, subnormals, dtypes, views."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_sign_mask_right.py"))
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

inf, nan = float("inf"), float("nan")
special = torch.tensor([inf, -inf, nan, -nan, 0.0, -0.0, 1e-40, -1e-40, 1.0, -1.0, 3e38, -3e38])
special = torch.cat([special, torch.tensor([inf]) - torch.tensor([inf])])
special = torch.cat([special, torch.tensor([nan]).view(torch.int32).bitwise_or(-(2**31)).view(torch.float32)])
cases = [(special,), (special.half(),), (special.bfloat16(),)]
for shape in ((1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (1000, 1)):
    x = torch.randn(shape)
    cases += [(x,), (x.half(),), (x.bfloat16(),), (-x.abs(),)]
cases += [(torch.randn(64, 33).t(),), (torch.randn(8, 1, 40).expand(8, 3, 40),), (torch.randn(40, 60)[::2, 1::3],)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
