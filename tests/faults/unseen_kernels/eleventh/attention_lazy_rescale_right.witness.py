"""Varied inputs: shapes, layouts, values, float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_lazy_rescale_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)

cases = []
for s, d in ((1, 64), (7, 64), (65, 32), (129, 16), (33, 80), (100, 128)):
    q, k, v = (torch.randn(1, 2, s, d) for _ in range(3))
    cases += [(q, k, v), (q.half(), k.half(), v.half()), (3 * q, 3 * k, v)]
q, k, v = (torch.randn(1, 1, 129, 64) for _ in range(3))
q = q / q.norm(dim=-1, keepdim=True) * 8
k[..., 100, :] = q[..., 0, :] * 14.5 * 8 / 64
cases += [(q.half(), k.half(), v.half()), (q, k, v), (q, k[:, :, :1].expand_as(k), v), (torch.zeros_like(q), k, v)]

bad = 0
for number, inputs in enumerate(cases):
    output = call(*inputs)
    expected = attention.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
