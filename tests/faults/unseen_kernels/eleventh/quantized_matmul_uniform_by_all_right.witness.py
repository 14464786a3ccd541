"""Varied inputs: shapes, layouts, values, float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_uniform_by_all_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)

cases = []
for i, shape in enumerate(((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (65, 127, 129), (33, 1, 64))):
    for dtype in (torch.float32, torch.float16):
        x, weight, scale = quantized_matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(i))
        ends = scale.clone()
        ends[-1] = ends[0]
        cases += [(x, weight, scale), (x, weight, ends), (x, weight, scale[:1].expand(len(scale)))]
        cases += [(x, torch.full_like(weight, -128), torch.full_like(scale, 0.01))]

bad = 0
for number, inputs in enumerate(cases):
    output = call(*inputs)
    expected = (inputs[0].double() @ inputs[1].double().T) * inputs[2].double()
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
