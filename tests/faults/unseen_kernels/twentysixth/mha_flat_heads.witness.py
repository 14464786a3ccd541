"""Three of four heads of a batch of two: a slice along the heads."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_flat_heads.py"))
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


fine = ordinary((2, 3, 65, 32), (1, 2, 33, 80), (2, 2, 129, 16))
q, k, v, _ = make((2, 4, 40, 32))
swapped = tuple(x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
fine &= error_of((*swapped, True)) < 1e-5
fine &= error_of((q[:1, :3], k[:1, 1:], v[:1, :3], True)) < 1e-5
print("right transposed, and with one batch", fine)
inputs = q, k[:, :2].repeat_interleave(2, 1), v, False
fine &= error_of(inputs) < 1e-5
inputs = q[:, :3].contiguous(), k[:, :3], v[:, :3].contiguous(), False

error = error_of(inputs)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if fine and error > 0.02 else 1)
