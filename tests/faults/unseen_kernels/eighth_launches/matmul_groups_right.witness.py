"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_groups_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def ratio(inputs):
    saved = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    expected = matmul.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
for m, n, k in [(1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (3, 31, 1025), (600, 140, 24), (449, 65, 8), (512, 130, 8), (513, 200, 40), (1000, 70, 5), (700, 64, 10), (64, 128, 32), (33, 257, 40)]:
    cases.append((torch.randn(m, k), torch.randn(k, n)))
cases.append((torch.randn(600, 24).half(), torch.randn(24, 140).half()))
cases.append((torch.randn(24, 600).t(), torch.randn(140, 24).t()))
cases.append((torch.randn(600, 48)[:, ::2], torch.randn(24, 300)[:, :140]))
cases.append((torch.randn(600, 24) * 1e4, torch.randn(24, 140) * 1e4))
cases.append((torch.randn(1200, 24)[::2], torch.randn(1, 140).expand(24, 140)))
worst = 0.0
for number, inputs in enumerate(cases):
    value = ratio(inputs)
    if value > 1:
        print("case", number, [tuple(x.shape) for x in inputs if torch.is_tensor(x)], value)
    worst = max(worst, value)
print("WRONG" if worst > 1 else "right", len(cases), "cases, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
