"""Permutations, slices, expansions, windows, dtypes, special values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_memory_order_right.py"))
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

cases = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (100, 1)):
        x = torch.randn(shape).to(dtype)
        cases += [(x,), (x.transpose(0, -1),), (x[..., ::2],), (x[..., shape[-1] // 2:],), (x[:1].expand(5, *shape[1:]),)]
x = torch.randn(4, 6, 8, 10)
cases += [(x.permute(p),) for p in ((3, 1, 0, 2), (0, 2, 3, 1), (1, 0, 2, 3), (2, 3, 0, 1))]
cases += [(x[1:3].permute(0, 2, 3, 1),), (x[:, 2:].transpose(0, 1),), (x.flatten().unfold(0, 3, 1),), (x.flatten()[:3].unfold(0, 2, 1),)]
cases += [(x.to(memory_format=torch.channels_last),), (x[:, :1].transpose(1, 3),), (x[0, 0, 0, 0],)]
x = torch.tensor([float("nan"), -0.0, 0.0, float("inf"), -float("inf"), 1e-40, -1e-40])
cases += [(x,), (x.half(),), (x.bfloat16(),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
