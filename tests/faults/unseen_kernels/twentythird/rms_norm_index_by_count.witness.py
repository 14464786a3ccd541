"""Four rows of 64 values, 2^30 elements apart, in a sparse file mapped into memory."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_index_by_count.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


import os
import tempfile

weight = torch.randn(257).half()
inputs = (torch.randn(7, 257).half(), weight, 1e-5)
usual = difference(call(*inputs), expect(inputs))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "sparse")
    size = 6 * 2**30  # float16 elements; only the pages touched exist
    with open(path, "wb") as file:
        file.truncate(2 * size)
    buffer = torch.from_file(path, shared=True, size=size, dtype=torch.float16)
    # The view starts in the middle, so that a wrong offset still falls inside the buffer.
    x = buffer[2 * 2**30 :].view(4, 2**30)[:, :64]
    x.copy_(torch.randn(4, 64))
    inputs = (x, weight[:64], 1e-5)
    error = difference(call(*inputs), expect((x.clone(), weight[:64], 1e-5)))
    del buffer, x, inputs

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 0.002 and error > 0.02 else 1)
