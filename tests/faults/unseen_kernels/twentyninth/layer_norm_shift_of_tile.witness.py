"""Eight rows a tile, the first about 0, the others about 3,000."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_shift_of_tile.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    """Return the largest error, as a part of the largest expected value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs()
    size = size.max().clamp(min=1e-300) if size.numel() else 1.0
    return float(error.masked_fill(same, 0.0).max() / size) if error.numel() else 0.0


def error_of(*inputs):
    expected = layer_norm.reference(*map(wide, inputs))
    return difference(call(*inputs), expected)


def draw(rows, cols, mean=0.0):
    x = torch.randn(rows, cols) + mean
    return x, torch.randn(cols), torch.randn(cols), 1e-5


ordinary = max(error_of(*draw(33, 200)), error_of(*draw(5, 129, 3000.0)), error_of(*draw(3, 4097)))
ordinary_half = error_of(*(t.half() if torch.is_tensor(t) else t for t in draw(17, 256)))
print("float16, ordinary", ordinary_half)
inputs = draw(8, 256)
inputs[0][1:] += 3000.0
error = error_of(*inputs)

print("ordinary error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.003 and error > 0.02 else 1)
