"""Varied shapes, layouts, dtypes, with and without the mask."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_paired_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest error over the largest value, against float64. No bfloat16: Triton's interpreter multiplies its bits."""
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf")).max()
    return float(error / expected.abs().max().clamp(min=1e-300))


def make(shape, dtype=torch.float32):
    return op.make_inputs(shape, dtype, CPU, generator)


def ordinary(*shapes, dtypes=("float32", "float16")):
    """Return the largest error of inputs as the op draws them."""
    errors = {}
    for shape in shapes:
        for name in dtypes:
            limit = 1e-5 if name == "float32" else 2e-2
            errors[shape, name] = error_of(make(shape, getattr(torch, name))) / limit
    place = max(errors, key=errors.get)
    print("ordinary inputs: the worst is", *place, "at", errors[place], "of its limit")
    return errors[place] < 1


fine, count = True, 0
shapes = ((1, 1, 1, 64), (1, 1, 7, 64), (2, 3, 65, 32), (1, 2, 33, 80), (1, 1, 97, 16), (2, 1, 32, 128), (1, 1, 160, 16), (1, 1, 40, 256))
for shape in shapes:
    for dtype in (torch.float32, torch.float16):
        q, k, v, _ = make(shape, dtype)
        b, h, s, d = shape
        packed = make((b, h, s, 3 * d), dtype)[0].split(d, -1)
        for t in ((q, k, v), packed, (q.mT.contiguous().mT, k[:1, :1, :1].expand(shape), v.transpose(1, 2).contiguous().transpose(1, 2))):
            for causal in (True, False):
                error = error_of((*t, causal))
                count += 1
                if error > (1e-5 if dtype == torch.float32 else 2e-2):
                    fine = False
                    print(shape, dtype, causal, error)
q, k, v, _ = make((1, 1, 90, 32))
fine &= error_of((6 * q, 6 * k, v, True)) < 1e-4 and error_of((6 * q, 6 * k, v, False)) < 1e-4
fine &= error_of((q, q, q, True)) < 1e-5

print("agree" if fine else "DIFFER", count, "inputs")
sys.exit(0 if fine else 1)
