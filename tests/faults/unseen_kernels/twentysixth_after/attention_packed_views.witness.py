"""One projection with four parts, of which v is the last; and k that is q."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_packed_views.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


shape = (2, 3, 65, 32)
plain = [torch.randn(shape) for _ in range(3)]
qkv = torch.randn(2, 65, 3, 3, 32).permute(2, 0, 3, 1, 4)
usual = max(
    show("three tensors", error_of(*plain)), show("packed q, k, v", error_of(*qkv)),
    show("one tensor for all", error_of(plain[0], plain[0], plain[0])),
    show("k is q, v of another storage", error_of(plain[0], plain[0], plain[1])),
)
four = torch.randn(2, 65, 4, 3, 32).permute(2, 0, 3, 1, 4)  # q, k, gate, v
error = min(
    show("packed q, k, gate, v", error_of(four[0], four[1], four[3])),
    show("k is q, v beside it", error_of(four[0], four[0], four[1])),
)

print("WRONG" if usual < 1e-05 and error > 0.02 else "right")
sys.exit(0 if usual < 1e-05 and error > 0.02 else 1)
