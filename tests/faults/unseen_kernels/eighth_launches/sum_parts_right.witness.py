"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_parts_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def ratio(inputs):
    saved = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    expected = sum.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(saved, inputs) if torch.is_tensor(a))
    half = inputs[0].dtype == torch.float16
    expected = expected.to(output.dtype).double()
    same = (output.double() == expected) | (output.isnan() & expected.isnan())
    error = torch.where(same, 0.0, (output.double() - expected).abs().nan_to_num(nan=float("inf")))
    finite = expected[expected.isfinite()]
    size = float(finite.abs().max()) if finite.numel() else 1.0
    return float(error.max()) / max(size, 1e-30) / (0.004 if half else 1e-4)


cases = []
for shape in [(1, 1), (7, 13), (1025,), (90000,), (1, 70001), (2, 90000), (3, 65537), (3, 131072), (15, 8192), (15, 20000), (16, 9000), (2, 3, 129), (1, 8191), (5, 8193), (33, 257), (64, 128), (1, 300000)]:
    cases.append((torch.randn(shape) + 0.1,))
cases.append((torch.randn(2, 90000).half(),))
cases.append((torch.randn(3, 20000).half() * 5,))
cases.append((torch.randn(90000, 3).t(),))
cases.append((torch.randn(4, 30000)[:, ::3],))
x = torch.randn(3, 70000)
x[1, 69999], x[2, 5] = float("inf"), float("nan")
cases.append((x,))
worst = 0.0
for number, inputs in enumerate(cases):
    value = ratio(inputs)
    if value > 1:
        print("case", number, [tuple(x.shape) for x in inputs if torch.is_tensor(x)], value)
    worst = max(worst, value)
print("WRONG" if worst > 1 else "right", len(cases), "cases, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
