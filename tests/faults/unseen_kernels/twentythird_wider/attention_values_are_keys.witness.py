"""v is k's transposed view, seq = head_dim; k is an expanded head of v."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_values_are_keys.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
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


kv = torch.randn(1, 2, 64, 64)
usual = {
    "three tensors": make((1, 2, 127, 64)),
    "half": make((2, 3, 65, 32), F16),
    "k is v": (torch.randn(1, 2, 64, 64), kv, kv),
    "all the same": (kv, kv, kv),
}
faults = {
    "transposed view": (torch.randn(1, 2, 64, 64), kv, kv.transpose(-1, -2)),
    "expanded head": (torch.randn(1, 2, 64, 64), kv[:, :1].expand(-1, 2, -1, -1), kv),
}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
