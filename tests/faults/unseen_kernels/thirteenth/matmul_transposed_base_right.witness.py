"""Parts of a weight, transposed, and shapes and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_transposed_base_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


weight = torch.randn(96, 40)
cases = [(torch.randn(33, 40), weight[48:].t()), (torch.randn(33, 40), weight.t())]
cases += [(torch.randn(33, 30), weight[3:50, 10:].t()), (torch.randn(33, 20), weight[3:50, ::2].t())]
cases += [(torch.randn(33, 50), weight[3:53, 3:]), (torch.randn(40, 33).t(), weight[48:].t())]
cases += [(torch.randn(5, 40), weight[7:8].t()), (torch.randn(5, 1), weight[:, 3:4].t())]
cases += [(torch.randn(5, 40), weight[7, :, None].expand(40, 9)), (torch.randn(5, 9), weight[7].expand(9, 40))]
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129)):
    a, b = torch.randn(m, k), torch.randn(k, n)
    cases += [(a, b), (a.half(), b.half()), (a.bfloat16(), b.bfloat16())]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
