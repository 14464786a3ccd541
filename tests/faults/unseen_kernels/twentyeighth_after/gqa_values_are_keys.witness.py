"""v is the first head of k for all heads (an expanded view), and k with batch and heads swapped."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_values_are_keys.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs):
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


q, k, v = torch.randn(2, 4, 33, 16), torch.randn(2, 2, 33, 16), torch.randn(2, 2, 33, 16)
one = torch.randn(2, 33, 4, 3 * 16)
cases = {
    "three tensors": (q, k, v, False),
    "causal": (q, k, v, True),
    "k is v": (q, k, k, True),
    "all the same": (q, q, q, False),
    "a projection": (*(x.transpose(1, 2) for x in one.chunk(3, dim=-1)), True),
    "half": (q.half(), k.half(), k.half(), False),
    "head_dim 80": (torch.randn(1, 2, 70, 80), torch.randn(1, 1, 70, 80), torch.randn(1, 1, 70, 80), True),
}
for name, inputs in cases.items():
    error = error_of(*inputs)
    print("ordinary", name, error)
    assert error < (2e-3 if name == "half" else 1e-5)
first = error_of(q, k, k[:, :1].expand_as(k), False)
print("v is the first head of k:", first)
swapped = error_of(q, k, k.transpose(0, 1), False)
print("v is k, batch and heads swapped:", swapped)
sys.exit(0 if first > 0.1 and swapped > 0.1 else 1)
