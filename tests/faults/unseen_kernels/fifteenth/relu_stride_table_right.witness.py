"""Shapes, views of up to five dimensions, dtypes, both NaN, infinities."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_stride_table_right.py"))
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
for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (2, 1, 3, 4, 5)):
    x = torch.randn(*shape)
    special = x.clone().flatten()
    special[: len(shape)] = float("nan")
    special[-1] = torch.tensor([-1], dtype=torch.int32).view(torch.float32)[0]
    special[len(special) // 2] = -float("inf")
    special = special.view(shape)
    cases += [(x,), (x.half(),), (special.bfloat16(),), (special,), (special.half(),), (x[:1].expand(shape),)]
    cases += [(x.permute(*reversed(range(x.dim()))),), (torch.randn(*shape[:-1], 2 * shape[-1])[..., 1::2],)]
cases += [(torch.tensor(-1.0),), (torch.randn(0, 3),), (torch.randn(50).as_strided((10, 8), (4, 1)),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    coarse = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 1e-2 if torch.bfloat16 in coarse else 2e-3 if torch.float16 in coarse else 1e-5
    output = call(*inputs)
    assert output.shape == expected.shape
    if output.numel():
        worst = max(worst, difference(output, expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
