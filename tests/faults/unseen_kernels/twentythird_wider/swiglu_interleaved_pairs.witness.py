"""Interleaved in both orders, and layouts that are nearly so."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_interleaved_pairs.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)
g = torch.Generator().manual_seed(0)
cpu = torch.device("cpu")
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def wide(x):
    floating = torch.is_tensor(x) and x.is_floating_point()
    return x.double() if floating else x


def difference(inputs):
    expected = op.reference(*map(wide, inputs)).double()
    output = call(*inputs)
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-30)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=F32):
    return op.make_inputs(shape, dtype, cpu, g)


cases = []
for dtype in (F32, F16, BF16):
    for n, m in ((1, 1), (7, 13), (3, 600), (1025, 1)):
        cases.append(("two tensors", make((n, m), dtype)))
        buffer = torch.randn(n, 2 * m + 3).to(dtype)
        dense = torch.randn(n, 2 * m).to(dtype)
        for b, text in ((buffer, "padded"), (dense, "dense")):
            even, odd = b[:, 0 : 2 * m : 2], b[:, 1 : 2 * m : 2]
            cases += [(text, (even, odd)), (text + ", up first", (odd, even)), (text + ", same", (odd, odd))]
        cases.append(("shifted", (buffer[:, :m], buffer[:, 1 : m + 1])))
        cases.append(("even and dense", (buffer[:, 0 : 2 * m : 2], buffer[:, 1 : m + 1])))
    pair = torch.randn(5, 6, 7, 2).to(dtype)
    cases.append(("last dimension", pair.unbind(-1)))
    cases.append(("transposed", tuple(x.transpose(0, 1) for x in pair.unbind(-1))))

worst = 0.0
for i, (text, inputs) in enumerate(cases):
    error = difference(inputs)
    bound = 1e-5 if inputs[-1 if op.__name__.endswith("fp8_matmul") else 0].dtype == F32 else 0.01
    print(i, text, error)
    assert error < bound, text
    worst = max(worst, error)
print("all", len(cases), "agree, worst", worst)
sys.exit(0)
