"""Few tiles and a deep k: three programs or more share a tile."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_streamed_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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


fine = ordinary((65, 127, 129), (3, 31, 1025), (257, 131, 101), (200, 200, 1100), dtypes=("float32", "float16"))
inputs = make((64, 64, 4096), torch.float16)

error = error_of(inputs)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if fine and error > 0.02 else 1)
