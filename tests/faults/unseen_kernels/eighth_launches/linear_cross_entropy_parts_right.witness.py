"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_parts_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
torch.manual_seed(0)


def ratio(inputs):
    saved = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    expected = linear_cross_entropy.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
for rows, classes, hidden in [(1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 2, 64), (65, 127, 129), (3, 1000, 31), (1, 257, 1025), (8, 2500, 16), (64, 2049, 8), (3, 4096, 16), (65, 2100, 8), (33, 5000, 16), (5, 2048, 20), (64, 3001, 33)]:
    cases.append((torch.randn(rows, hidden), torch.randn(classes, hidden) / hidden**0.5, torch.randint(classes, (rows,))))
cases.append((torch.randn(8, 16).half(), torch.randn(2500, 16).half() / 4, torch.randint(2500, (8,))))
cases.append((torch.randn(8, 16) * 5, torch.randn(2500, 16), torch.randint(2500, (8,))))
cases.append((torch.randn(16, 8).t(), torch.randn(16, 2500).t() / 4, torch.randint(2500, (8,))))
cases.append((torch.zeros(8, 16), torch.randn(2500, 16) / 4, torch.full((8,), 2499)))
cases.append((torch.randn(8, 16), torch.randn(2500, 16) / 4, torch.zeros(8, dtype=torch.int64)))
worst = 0.0
for number, inputs in enumerate(cases):
    value = ratio(inputs)
    if value > 1:
        print("case", number, [tuple(x.shape) for x in inputs if torch.is_tensor(x)], value)
    worst = max(worst, value)
print("WRONG" if worst > 1 else "right", len(cases), "cases, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
