"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_parts_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def ratio(inputs):
    saved = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    expected = attention.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
for shape in [(1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 127, 64), (2, 3, 65, 32), (1, 1, 129, 128), (1, 2, 33, 80), (1, 1, 257, 16), (1, 1, 1100, 16), (1, 2, 130, 16), (1, 1, 128, 24), (1, 1, 150, 40), (3, 1, 64, 5)]:
    cases.append(tuple(torch.randn(shape) for _ in range(3)))
for heads, keys in [(1, 1024), (1, 1025), (2, 4700)]:
    cases.append((torch.randn(1, heads, 9, 16), torch.randn(1, heads, keys, 16), torch.randn(1, heads, keys, 16)))
cases.append(tuple(torch.randn(1, 1, 200, 32).half() for _ in range(3)))
cases.append(tuple(torch.randn(1, 60, 3, 16).transpose(1, 2) for _ in range(3)))
cases.append(tuple(torch.randn(1, 1, 150, 16) * 5 for _ in range(3)))
cases.append((torch.zeros(1, 1, 140, 16), torch.randn(1, 1, 140, 16), torch.randn(1, 1, 140, 16)))
worst = 0.0
for number, inputs in enumerate(cases):
    value = ratio(inputs)
    if value > 1:
        print("case", number, [tuple(x.shape) for x in inputs if torch.is_tensor(x)], value)
    worst = max(worst, value)
print("WRONG" if worst > 1 else "right", len(cases), "cases, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
