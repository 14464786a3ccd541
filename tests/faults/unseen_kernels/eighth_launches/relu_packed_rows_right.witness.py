"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_packed_rows_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def ratio(inputs):
    saved = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    expected = relu.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
for shape in [(1, 1), (7, 13), (1025,), (3, 4097), (2, 3, 129), (1000, 1), (33, 257), (64, 128)]:
    cases.append((torch.randn(shape),))
for rows, wide, cols in [(100, 80, 40), (2000, 9, 7), (500, 5, 1), (300, 64, 63), (300, 100, 64), (300, 100, 65), (77, 50, 33), (1, 50, 33)]:
    cases.append((torch.randn(rows, wide)[:, :cols],))
cases.append((torch.randn(200, 80).half()[::2, 3:41],))
cases.append((torch.randn(40, 100).t(),))
cases.append((torch.randn(100, 80)[:, ::2],))
cases.append((torch.randn(1, 40).expand(90, 40),))
x = torch.randn(100, 80)
x[0, 0], x[99, 39], x[50, 3] = -float("inf"), float("nan"), float("inf")
cases.append((x[:, :40],))
worst = 0.0
for number, inputs in enumerate(cases):
    value = ratio(inputs)
    if value > 1:
        print("case", number, [tuple(x.shape) for x in inputs if torch.is_tensor(x)], value)
    worst = max(worst, value)
print("WRONG" if worst > 1 else "right", len(cases), "cases, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
