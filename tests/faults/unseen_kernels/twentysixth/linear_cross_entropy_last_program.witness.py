"""Varied shapes, layouts, dtypes and sizes of logits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_last_program.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
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
shapes = (*op.SHAPES, (33, 64, 32), (70, 65, 100), (5, 513, 7), (64, 128, 64))
for shape in shapes:
    for dtype in (torch.float32, torch.float16):
        x, w, t = make(shape, dtype)
        for inputs in ((x, w, t), (x.T.contiguous().T, w.T.contiguous().T, t), (x[:1].expand(x.shape), w, t[:1].expand(t.shape)), (30 * x, w, t)):
            error = error_of(inputs)
            count += 1
            if error > (1e-5 if dtype == torch.float32 else 2e-2):
                exact = float(op.reference(*map(wide, inputs)))
                if abs(exact) > 1e-2:
                    fine = False
                print(shape, dtype, error, exact)
x, w, t = make((40, 130, 50))
inf = x.clone()
inf[3, 4] = float("inf")
fine &= bool(call(inf, w, t).isnan()) == bool(op.reference(inf, w, t).isnan())
inf[3, 4] = float("nan")
fine &= bool(call(inf, w, t).isnan())

print("agree" if fine else "DIFFER", count, "inputs")
sys.exit(0 if fine else 1)
