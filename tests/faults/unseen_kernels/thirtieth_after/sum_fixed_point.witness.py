"""Shapes, dtypes, values far apart, NaN and infinities; repeated calls."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_fixed_point.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs, rows=None):
    """Return the largest error, of the largest expected value; of the rows given."""
    output, expected = call(*inputs).double(), op.reference(*map(wide, inputs)).double()
    assert output.shape == expected.shape
    if rows is not None:
        output, expected = output[rows], expected[rows]
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

worst, count = 0.0, 0
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (17, 129), (30, 1)):
        for kind in ("normal", "apart", "special", "transposed", "tiny"):
            x = torch.randn(shape).to(dtype)
            if kind == "apart":
                x = (x.double() * 10.0 ** torch.randint(-4, 3, shape)).to(dtype)
            elif kind == "special":
                flat = x.view(-1)
                flat[0], flat[-1], flat[flat.numel() // 2] = float("inf"), float("-inf"), float("nan")
            elif kind == "transposed":
                x = x.mT.contiguous().mT if x.dim() > 1 else x
            elif kind == "tiny":
                x = (x.double() * (1e-7 if dtype == torch.float16 else 1e-35 if dtype == torch.bfloat16 else 1e-38)).to(dtype)
            output, expected = call(x), op.reference(x.double())
            size = x.double().abs().nan_to_num(0.0, 0.0, 0.0).sum(-1)
            allowed = 2e-7 * size + torch.finfo(dtype).eps * expected.abs() + torch.finfo(dtype).tiny * 1e-2
            same = (output.double() == expected) | (output.isnan() & expected.isnan())
            error = ((output.double() - expected).abs() / allowed).masked_fill(same, 0.0)
            if float(error.nan_to_num(float("inf")).max()) >= 1: print(dtype, shape, kind, output.flatten()[:5], expected.flatten()[:5])
            worst = max(worst, float(error.nan_to_num(float("inf")).max()))
            count += 1

print("worst:", worst, "of", count, "inputs, error over its limit")
sys.exit(0 if worst < 1 else 1)
