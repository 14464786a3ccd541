"""One step of [steps, batch, m], other views, shapes and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_contiguous_row_stride_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


steps = torch.randn(12, 4, 64)
cases = [(steps[2:3].transpose(0, 1), torch.randn(64)), (steps[2:3, :, :40].transpose(0, 1), torch.randn(40))]
cases += [(steps[2:5].transpose(0, 1), torch.randn(64)), (steps[:, 1], torch.randn(64)), (steps[:, 1:2], torch.randn(64))]
cases += [(steps[:1].expand(5, 4, 64), torch.randn(64)), (steps[3, :1].expand(7, 64), torch.randn(1).expand(64))]
cases += [(steps[3, :, 5:6], torch.randn(1)), (steps.transpose(1, 2), torch.randn(4)), (steps[None, :, None], torch.randn(64))]
cases += [(0.001 * torch.randn(5, 40), torch.randn(80)[::2], 1e-5), (torch.zeros(3, 7), torch.randn(7), 1e-3)]
for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (50, 1)):
    x, w = torch.randn(shape), torch.randn(shape[-1])
    cases += [(x, w), (x.half(), w.half()), (x.bfloat16(), w.bfloat16())]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
