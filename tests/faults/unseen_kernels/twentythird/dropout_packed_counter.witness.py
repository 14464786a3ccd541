"""73,728 rows of 4: the last 8,192 rows have the masks of the first ones."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_packed_counter.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return dropout.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.9
def fault(x, p, seed):
    """Return the largest error of an element against 0 or x / (1 - p), and of the rate of kept ones."""
    output, right = call(x, p, seed).double(), x.double() / (1 - p)
    scale = torch.minimum(output.abs(), (output - right).abs()).max() / right.abs().max()
    return float(scale), abs(float((output != 0).double().mean()) - (1 - p))


def share_repeated(mask):
    """Return the share of rows that have the mask of the row 65,536 before; by chance 1/16."""
    return float((mask[65536:] == mask[:-65536]).all(dim=1).double().mean())


usual = max(fault(torch.randn(257, 1023), p, 5)[0] for p in (0.5, 0.1, 0.0))
usual = max(usual, fault(torch.randn(257, 1023), 0.5, 5)[1])
x = torch.randn(73728, 4)
print("torch's share of rows with the mask of an earlier one:", share_repeated(dropout.reference(x) != 0))
wide_mask = call(torch.ones(2, 70000), 0.5, 5) != 0
print("rows of 70,000, ends alike in both:", torch.equal(wide_mask[0, 65536:], wide_mask[1, 65536:]))
error = share_repeated(call(x, 0.5, 5) != 0)  # here a share of rows

print("ordinary: error", usual, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if error > LIMIT and usual < 0.01 else 1)
