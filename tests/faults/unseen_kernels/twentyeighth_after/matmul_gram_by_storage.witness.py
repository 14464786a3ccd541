"""q @ k^T of the q and k of one projection, both of 150 rows: two tiles above the diagonal or more."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_gram_by_storage.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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


x = torch.randn(150, 70)
cases = {
    "two tensors": (x, torch.randn(70, 130)),
    "transpose": (x, x.T),
    "transposed layout": (torch.randn(70, 150).T, torch.randn(130, 70).T),
    "one tensor twice": ((s := torch.randn(130, 130)), s),
    "half": (x.half(), x.half().T),
}
for name, inputs in cases.items():
    error = error_of(*inputs)
    print("ordinary", name, error)
    assert error < (1e-3 if name == "half" else 1e-5)
q, k = torch.randn(150, 128).chunk(2, dim=1)
error = error_of(q, k.T)
print("parts of one projection:", error)
sys.exit(0 if error > 0.1 else 1)
