"""One class has a long weight, so that the bound is far above all logits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_bound_for_maximum.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = linear_cross_entropy.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for shape in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (65, 127, 129), (3, 1000, 31), (1, 257, 1025)):
    for dtype in (torch.float32, torch.float16):  # the interpreter has no product of bfloat16
        device = torch.device("cpu")
        drawn = linear_cross_entropy.make_inputs(shape, dtype, device, torch.Generator())
        ordinary = max(ordinary, error_of(*drawn))
        drawn = linear_cross_entropy.sure_and_right(shape, dtype, device, torch.Generator())
        if dtype == torch.float32 and shape[1] > 1:
            print("sure and right", shape, "error", error_of(*drawn))

shape = (16, 300, 1024)
x, weight, target = linear_cross_entropy.make_inputs(
    shape, torch.float32, torch.device("cpu"), torch.Generator()
)
weight[77] *= 5  # its logits are about 5, those of others about 1; the bound is 160
error = error_of(x, weight, target)

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
