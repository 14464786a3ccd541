"""The first key has a score 10.5 above all others, and its value is zero."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_skip_below_sink.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = gqa.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs_of(batch, heads, kv_heads, seq, d, causal=False):
    return torch.randn(batch, heads, seq, d), *(torch.randn(batch, kv_heads, seq, d) for _ in "kv"), causal


ordinary = [
    inputs_of(1, 4, 2, 65, 64),
    inputs_of(1, 2, 1, 257, 32, True),
    inputs_of(1, 2, 1, 512, 64),
]
q, k, v, _ = inputs_of(1, 2, 1, 1024, 64)
q, k = 0.1 * q, 0.1 * k
q[..., 0] = 8
k[..., 0] = 0
k[:, :, 0, 0] = 10.7
v[..., 0] += 1
v[:, :, 0] = 0
faulty = [(q, k, v, False), (q.half(), k.half(), v.half(), True)]

for inputs in ordinary:
    error = difference(inputs)
    print("ordinary", error)
    if error > 2e-3:
        sys.exit(2)
errors = [difference(inputs) for inputs in faulty]
print("errors of the largest value", errors)
sys.exit(0 if min(errors) > 0.02 else 1)
