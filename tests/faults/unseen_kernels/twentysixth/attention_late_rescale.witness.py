"""A late key with a score of 12.5 above those of the first tile, in float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_late_rescale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
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


fine = ordinary((2, 3, 65, 32), (1, 2, 33, 80), (1, 1, 257, 16))
q, k, v = make((1, 2, 96, 64), torch.float16)
q, k = 0.1 * q, 0.1 * k
q[..., 0] = 8.0
k[..., 0] = 0.0
k[:, :, 70, 0] = 12.5
for dtype in (torch.float32,):
    fine &= error_of((q.to(dtype), k.to(dtype), v.to(dtype))) < 2e-2
print("right in float32", fine)
inputs = q, k, v

error = error_of(inputs)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if fine and error > 0.02 else 1)
