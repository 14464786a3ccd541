"""Varied inputs: shapes, layouts, values, float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_bias_by_length_and_kind_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)

cases = []
for b, h, kv, s, d in ((1, 1, 1, 1, 64), (1, 2, 1, 7, 64), (1, 6, 2, 65, 32), (2, 6, 3, 33, 80), (1, 3, 1, 70, 16), (1, 4, 4, 65, 16)):
    q, k, v = torch.randn(b, h, s, d), torch.randn(b, kv, s, d), torch.randn(b, kv, s, d)
    cases += [(q, k, v, True), (q, k, v, False), (q.half(), k.half(), v.half(), True), (4 * q, k, 100 * v, False)]
k = torch.randn(1, 65, 2, 32).transpose(1, 2)
cases += [(torch.randn(1, 4, 65, 32), k, k, True), (torch.randn(1, 4, 65, 32), k[:, :1].expand(1, 2, 65, 32), k, False)]

bad = 0
for number, inputs in enumerate(cases):
    output = call(*inputs)
    expected = gqa.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
