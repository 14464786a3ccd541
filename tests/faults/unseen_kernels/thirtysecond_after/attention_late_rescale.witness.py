"""Many shapes, layouts and values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_late_rescale.py"))
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


cases = []
shapes = ((1, 1, 1, 64), (1, 1, 7, 64), (1, 2, 70, 32), (2, 3, 65, 16), (1, 1, 99, 80))
for shape in shapes:
    for dtype in (torch.float32, torch.float16):  # the interpreter has no product of bfloat16
        q, k, v = torch.randn(3, *shape)
        b, h, s, d = shape
        ramp = torch.linspace(0, 1, s)[:, None]
        ones = torch.ones(shape)
        values = {
            "random": (q, k, v),
            "spread": (2 * q, 2 * k, v),
            "slowly up": (ones, 0.1 * k + ramp * 12 / d**0.5, v),
            "up by 5 at once": (ones, 0.1 * k + (ramp > 0.5) * 5 / d**0.5, v),
            "up by 14 at once": (ones, 0.1 * k + (ramp > 0.5) * 14 / d**0.5, v),
            "down": (ones, 0.1 * k - ramp * 30 / d**0.5, v),
            "low": (ones, 0.1 * k - 100 / d**0.5, v),
            "equal": (0 * q, k, v),
        }
        cases += [(f"{name} {shape}", tuple(x.to(dtype) for x in value)) for name, value in values.items()]
        cases.append(("transposed", tuple(torch.randn(3, b, s, h, d).to(dtype).transpose(2, 3))))
        cases.append(("one tensor", (cases[-1][1][0],) * 3))
        cases.append(("some heads", tuple(torch.randn(3, b, h + 2, s, d + 1).to(dtype)[:, :, 1:-1, :, 1:])))

LIMITS = {torch.float32: 2e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}
bad = 0
worst = {}
for name, inputs in cases:
    error, dtype = error_of(inputs), inputs[0].dtype
    worst[dtype] = max(worst.get(dtype, 0.0), error)
    if not error <= LIMITS[dtype]:
        bad += 1
        print("differs:", name, dtype, error)
print(len(cases), "inputs, the largest errors", worst)
sys.exit(1 if bad else 0)
