"""Sequences of an even and an odd number of tiles, with and without the mask."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_paired_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mha.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return mha.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


errors = []


def test(*inputs):
    limit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[inputs[0].dtype]
    errors.append(error_of(*inputs) / limit)


for dtype in (torch.float16, torch.bfloat16, torch.float32):
    for shape in ((1, 1, 1, 64), (1, 2, 97, 16), (1, 1, 257, 16), (1, 1, 320, 32), (1, 1, 385, 20)):
        for causal in (False, True):
            q, k, v, _ = make(shape, dtype)
            test(q, k, v, causal)
            test(q * 3, k.mT.contiguous().mT, v, causal)
q, k, v, _ = make((5, 11, 257, 40))
test(q, k, v, True)
q, k, v, _ = make((1, 1, 100, 160))
test(q, k, v, True)
print(len(errors), "inputs; largest error", max(errors), "of the limit")
sys.exit(0 if max(errors) < 1 else 1)
