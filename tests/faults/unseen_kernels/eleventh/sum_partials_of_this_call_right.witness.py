"""Varied inputs: shapes, layouts, values, float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_partials_of_this_call_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)

special = torch.randn(7, 13)
special[0, 0], special[1, 1], special[2, 2], special[3] = float("inf"), -float("inf"), float("nan"), 0.0
tensors = [
    torch.randn(1, 1), torch.randn(7, 13), torch.randn(1025), torch.randn(2, 3, 129), torch.randn(3, 4097), torch.randn(129, 1),
    torch.randn(33, 257).half(), torch.randn(65, 64).T, torch.randn(100, 80)[:, :64].T, torch.randn(100, 80)[:, 3:70], torch.randn(40, 64)[::2],
    torch.randn(1, 64).expand(33, 64), torch.randn(4, 129)[:1].expand(4, 129), torch.randn(33, 1).expand(33, 5), torch.randn(4, 10, 16)[:, :5],
    torch.randn(5, 7, 9).permute(2, 0, 1), torch.randn(33, 257)[:, ::3], 1e4 * torch.randn(33, 65), torch.zeros(9, 65), special,
    (30000 * torch.rand(17, 33)).half().T, torch.randn(1001)[1:].view(10, 100),
]
tensors = [x for x in tensors if x.dtype == torch.float32]
half = torch.randn(33, 257).half()
cases = [(x,) for x in (*tensors, half, torch.randn(9, 9000), *reversed(tensors), torch.randn(200, 600), torch.randn(5, 5))]

bad = 0
for number, inputs in enumerate(cases):
    output = call(*inputs)
    expected = sum.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    got = output.double()
    alike = (got == expected) | (got.isnan() & expected.isnan())
    finite = expected[expected.isfinite()].abs()
    size = float(finite.max()) if len(finite) else 0.0
    tolerance = 1e-5 if output.dtype == torch.float32 else 4e-3
    wrong = ~alike & ~((got - expected).abs() <= tolerance * size)
    if wrong.any():
        bad += 1
        print("case", number, float((got - expected).abs().max()), "of", size)
print("WRONG" if bad else "right", len(cases), "cases")
sys.exit(0 if bad else 1)
