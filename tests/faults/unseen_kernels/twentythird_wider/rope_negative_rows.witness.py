"""Many shapes, one position, one head, strided and expanded x."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_negative_rows.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)
g = torch.Generator().manual_seed(0)
cpu = torch.device("cpu")
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def wide(x):
    floating = torch.is_tensor(x) and x.is_floating_point()
    return x.double() if floating else x


def difference(inputs):
    expected = op.reference(*map(wide, inputs)).double()
    output = call(*inputs)
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-30)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=F32):
    return op.make_inputs(shape, dtype, cpu, g)


cases = []
shapes = (
    (1, 1, 1, 1), (1, 1, 7, 13), (1, 2, 127, 32), (2, 3, 65, 16), (1, 1, 129, 64), (1, 2, 33, 40),
    (3, 1, 257, 8), (1, 1, 1023, 5), (4, 5, 1, 8), (2, 2, 2, 2), (7, 3, 10, 1),
)  # fmt: skip
for shape in shapes:
    for dtype in (F32, F16, BF16):
        x, cos, sin = make(shape, dtype)
        cases.append((f"{shape}", (x, cos, sin)))
        cases.append((f"{shape} heads inside", (x.transpose(1, 2).contiguous().transpose(1, 2), cos, sin)))
        twice = torch.cat((x, x), -1)[..., ::2]
        cases.append((f"{shape} strided", (twice, cos, sin)))
    cases.append((f"{shape} expanded", (make(shape)[0][:1].expand(3, -1, -1, -1), *make(shape)[1:])))

worst = 0.0
for i, (text, inputs) in enumerate(cases):
    error = difference(inputs)
    bound = 1e-5 if inputs[-1 if op.__name__.endswith("fp8_matmul") else 0].dtype == F32 else 0.01
    print(i, text, error)
    assert error < bound, text
    worst = max(worst, error)
print("all", len(cases), "agree, worst", worst)
sys.exit(0)
