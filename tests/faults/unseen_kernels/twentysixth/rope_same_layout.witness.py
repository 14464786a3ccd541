"""One vector expanded over all positions."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_same_layout.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest error over the largest value, against float64."""
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf")).max()
    return float(error / expected.abs().max().clamp(min=1e-300))


def make(shape, dtype=torch.float32):
    return op.make_inputs(shape, dtype, CPU, generator)


def ordinary(*shapes, dtypes=op.DTYPES):
    """Return the largest error of inputs as the op draws them."""
    errors = {}
    for shape in shapes:
        for name in dtypes:
            limit = 1e-5 if name == "float32" else 2e-2
            errors[shape, name] = error_of(make(shape, getattr(torch, name))) / limit
    place = max(errors, key=errors.get)
    print("ordinary inputs: the worst is", *place, "at", errors[place], "of its limit")
    return errors[place] < 1


fine = ordinary((1, 1, 7, 13), (2, 3, 65, 16), (1, 2, 33, 40), (1, 1, 1023, 5), (1, 1, 1, 1))
x, cos, sin = make((2, 3, 40, 16))
for other in (
    x.transpose(1, 2).contiguous().transpose(1, 2), torch.cat([x, x], -1)[..., :32], x[:, :1].expand(2, 5, 40, 32),
    x[:1].expand(3, 3, 40, 32), x.mT.contiguous().mT, torch.cat([x, x], 2)[:, :, ::2],
):
    fine &= error_of((other, cos, sin)) < 1e-5
print("right in other layouts", fine)
inputs = x[:, :, :1].expand(2, 3, 40, 32), cos, sin

error = error_of(inputs)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if fine and error > 0.02 else 1)
