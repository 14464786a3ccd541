"""Many shapes around the tiles' sizes, and transposed a."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_moved_back.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
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
for m, n, k in (
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (33, 65, 63), (32, 64, 64),
    (31, 63, 127), (34, 70, 128), (3, 31, 1025), (64, 128, 192), (63, 129, 100), (40, 66, 65),
):  # fmt: skip
    for dtype in (F16, BF16):
        a, b, scale_a, scale_b = make((m, n, k), dtype)
        cases.append((f"{m, n, k}", (a, b, scale_a, scale_b)))
        turned = a.view(torch.uint8).T.contiguous().T.view(torch.float8_e4m3fn)
        cases.append((f"{m, n, k} transposed", (turned, b, scale_a, scale_b)))

worst = 0.0
for i, (text, inputs) in enumerate(cases):
    error = difference(inputs)
    bound = 1e-5 if inputs[-1 if op.__name__.endswith("fp8_matmul") else 0].dtype == F32 else 0.01
    print(i, text, error)
    assert error < bound, text
    worst = max(worst, error)
print("all", len(cases), "agree, worst", worst)
sys.exit(0)
