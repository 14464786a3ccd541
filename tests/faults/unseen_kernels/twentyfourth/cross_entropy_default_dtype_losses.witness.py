"""float32 logits while torch's default dtype is bfloat16, as while a model is loaded."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_default_dtype_losses.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(*inputs):
    """Return the largest error, as a part of the largest value."""
    expected = cross_entropy.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not expected.numel():
        return 0.0
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(rows, classes, scale=1.0):
    return scale * torch.randn(rows, classes, dtype=torch.float32), torch.randint(classes, (rows,))


ordinary = difference(*inputs(127, 129))
pairs = [inputs(3, 1000), inputs(5, 300), inputs(1, 4097)]
torch.set_default_dtype(torch.bfloat16)
error = max(difference(*pair) for pair in pairs)
torch.set_default_dtype(torch.float16)
print("default float16, losses past 65504:", difference(*inputs(7, 64, 1e5)))
torch.set_default_dtype(torch.float32)

print("ordinary", ordinary)
print("WRONG" if error > 0.0005 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.0005 and ordinary < 1e-05 else 1)
