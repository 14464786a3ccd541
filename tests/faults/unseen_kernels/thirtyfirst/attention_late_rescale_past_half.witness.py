"""float16: the second tile of keys has a score that is 18 powers of two over the first tile."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_late_rescale_past_half.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs, output=None):
    """Return the largest error, as a part of the largest value expected."""
    expected = attention.reference(*map(wide, inputs))
    output = (call(*inputs) if output is None else output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ordinary = 0.0
for shape in ((1, 1, 7, 64), (1, 2, 127, 64), (1, 2, 33, 80), (1, 1, 257, 16)):
    for dtype in (torch.float32, torch.float16):  # the interpreter has no product of bfloat16
        q, k, v = (torch.randn(shape).to(dtype) for _ in range(3))
        ordinary = max(ordinary, error_of(q, k, v))

q, k, v = (torch.randn(1, 2, 128, 64).half() for _ in range(3))
k[:, :, 40] = q[:, :, 5] * (14.2 * 8 / (q[:, :, 5].float() ** 2).sum(-1, keepdim=True)).half()
single = error_of(q.float(), k.float(), v.float())
print("the same values in float32: error", single)
error = error_of(q, k, v)

print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
