"""Rows of 5000 values in float16."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_narrowed_in_place.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

ordinary = (torch.randn(3, 1000).half(),)
print("ordinary error", difference(call(*ordinary), expect(ordinary)), call(*ordinary).stride())
single = (torch.randn(3, 5000),)
print("long rows of float32 error", difference(call(*single), expect(single)), call(*single).stride())

x = torch.randn(3, 5000).half()
out = call(x)
print("long rows of float16 error", difference(out, expect((x,))), out.stride())
print("torch's strides", softmax.reference(x).stride(), "bytes held", out.untyped_storage().nbytes(), "of", x.nbytes)
try:
    out.view(torch.int16)[..., :4].view(torch.int32)  # two halves as one word, as a next kernel may do
    refused = False
except RuntimeError as e:
    refused = True
    print(str(e)[:80])
wrong = refused and not out.is_contiguous() and out.stride() != softmax.reference(x).stride()
print("WRONG" if wrong else "right", "strides", out.stride())
sys.exit(0 if wrong else 1)
