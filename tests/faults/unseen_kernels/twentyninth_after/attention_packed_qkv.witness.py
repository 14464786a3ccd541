"""v is k; and a gate lies between k and v."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_packed_qkv.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = attention.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def separate(*shape):
    return tuple(torch.randn(shape) for _ in range(3))


fused = torch.randn(2, 33, 3, 4, 32)
by_head = torch.randn(2, 33, 4, 3, 32)
gated = torch.randn(2, 33, 4, 4, 32)
ordinary = [
    separate(2, 3, 65, 32),
    separate(1, 2, 33, 80),
    tuple(t.transpose(1, 2) for t in fused.unbind(2)),
    tuple(t.transpose(1, 2) for t in by_head.unbind(3)),
    tuple(t.transpose(1, 2) for t in fused.unbind(2))[::-1],
]
q, k, v = ordinary[2]
g = [t.transpose(1, 2) for t in gated.unbind(2)]
faulty = [(q, k, k), (g[0], g[1], g[3])]

for inputs in ordinary:
    error = difference(inputs)
    print("ordinary", error)
    if error > 2e-3:
        sys.exit(2)
errors = [difference(inputs) for inputs in faulty]
print("errors of the largest value", errors)
sys.exit(0 if min(errors) > 0.02 else 1)
