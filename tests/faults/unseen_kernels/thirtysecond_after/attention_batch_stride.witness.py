"""Some heads of a larger tensor, in two batches."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_batch_stride.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest difference from the reference in float64, in units of its largest value."""
    output = call(*inputs).double()
    expected = attention.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(*shape):
    return torch.randn(3, *shape)


ordinary = {
    "contiguous": tuple(draw(2, 3, 65, 32)),
    "transposed": tuple(draw(2, 65, 3, 32).transpose(2, 3)),
    "fused projection": tuple(x.transpose(1, 2) for x in torch.randn(2, 65, 9, 32).split(3, dim=2)),
    "a cache": tuple(draw(2, 3, 90, 32)[:, :, :, :65]),
    "heads of one batch": tuple(draw(1, 6, 65, 32)[:, :, :3]),
}
rare = {
    "some heads": tuple(draw(2, 6, 65, 32)[:, :, :3]),
    "some positions of the transpose": tuple(draw(2, 90, 3, 32)[:, :, :65].transpose(2, 3)),
    "every other batch": tuple(draw(4, 3, 65, 32)[:, ::2]),
}
LIMIT = 1e-2

worst = 0.0
for name, inputs in ordinary.items():
    error = error_of(inputs)
    worst = max(worst, error)
    print("ordinary:", name, error)
least = float("inf")
for name, inputs in rare.items():
    error = error_of(inputs)
    least = min(least, error)
    print("rare:", name, error)
wrong = least > 0.02 and worst < LIMIT
print("WRONG in the rare inputs only" if wrong else "not as it should be")
sys.exit(0 if wrong else 1)
