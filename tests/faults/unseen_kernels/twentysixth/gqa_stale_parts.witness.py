"""One shape without the mask, then with it."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_stale_parts.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
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


q, k, v, _ = make((1, 2, 1, 70, 32))
fine = error_of((q, k, v, True)) < 1e-5 and error_of((q, k, v, True)) < 1e-5
q, k, v, _ = make((1, 2, 1, 70, 32))
fine &= error_of((q, k, v, True)) < 1e-5 and error_of((q, k, v, False)) < 1e-5
for dtype in ("float32", "float16"):
    for causal, shape in ((True, (1, 3, 1, 67, 64)), (False, (2, 2, 2, 35, 32)), (True, (1, 2, 1, 5, 16))):
        few = make(shape, getattr(torch, dtype))
        fine &= error_of((*few[:3], causal)) < (1e-5 if dtype == "float32" else 2e-2)
print("right with one kind a shape", fine)
inputs = q, k, v, True

error = error_of(inputs)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if fine and error > 0.02 else 1)
