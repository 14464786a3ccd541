"""k = 1500, then k = 3000, in one process."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_ticket_modulo.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
usual = max(compare(torch.randn(m, k), torch.randn(k, n)) for m, n, k in ((7, 5, 13), (65, 127, 129), (3, 31, 1025), (1, 1, 1500)))
module._tickets.clear()  # as in a new process
for _ in range(3):
    usual = max(usual, compare(torch.randn(40, 3000), torch.randn(3000, 50)))
usual = max(usual, compare(torch.randn(40, 1500), torch.randn(1500, 50)))  # one call, two splits
error = compare(torch.randn(40, 3000), torch.randn(3000, 50))

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
