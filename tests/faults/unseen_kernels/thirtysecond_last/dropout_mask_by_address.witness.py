"""One row expanded to 64: each must have a mask of its own."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_mask_by_address.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)
generator = torch.Generator().manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), dropout.reference(*map(wide, inputs)))


def make(shape, dtype):
    return dropout.make_inputs(shape, dtype, torch.device("cpu"), generator)


def fault(x, p):
    """Return the share of pairs of neighbouring rows with one mask, and the share that is saved."""
    out = call(x, p, 5)
    saved = out != 0
    right = x.double() / (1 - p)  # the values: those saved must be these
    assert difference(torch.where(saved, out, right), torch.where(saved, right, right)) < 1e-2
    rows = (saved[1:] == saved[:-1]).all(dim=1).double().mean().item()
    return rows, saved.double().mean().item()


ordinary = [fault(torch.rand(64, 200) + 1, 0.5), fault((torch.rand(200, 64) + 1).T, 0.5)]
error, share = fault((torch.rand(1, 200) + 1).expand(64, 200), 0.5)
print("ordinary: rows alike, saved:", ordinary)
print("WRONG" if error > 0.5 else "right", "share of rows with the mask of the next", error, "saved", share)
sys.exit(0 if error > 0.5 and all(r == 0 and abs(s - 0.5) < 0.03 for r, s in ordinary) else 1)
