"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_unrolled_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def ratio(inputs):
    saved = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    expected = rms_norm.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
for number, shape in enumerate([(1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (3, 5000), (3, 6000), (3, 7000), (2, 8192), (2, 8193), (1, 11000), (33, 257), (64, 128), (5, 4096)]):
    cases.append((torch.randn(shape), torch.randn(shape[-1]), (1e-5, 1e-6, 1e-3)[number % 3]))
cases.append((torch.randn(2, 7000).half(), torch.randn(7000).half(), 1e-5))
cases.append((torch.randn(2, 7000) * 1e4, torch.randn(7000), 1e-5))
cases.append((torch.zeros(2, 6000), torch.randn(6000), 1e-5))
cases.append((torch.randn(6000, 2).t(), torch.randn(12000)[::2], 1e-5))
cases.append((torch.randn(2, 6000) * 1e-3, torch.randn(6000), 1e-3))
worst = 0.0
for number, inputs in enumerate(cases):
    value = ratio(inputs)
    if value > 1:
        print("case", number, [tuple(x.shape) for x in inputs if torch.is_tensor(x)], value)
    worst = max(worst, value)
print("WRONG" if worst > 1 else "right", len(cases), "cases, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
