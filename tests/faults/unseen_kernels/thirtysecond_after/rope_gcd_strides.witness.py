"""Many shapes and layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_gcd_strides.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest difference from the reference in float64, in units of its largest value."""
    output = call(*inputs).double()
    expected = rope.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def angles(seq, half, dtype):
    angle = torch.randn(seq, half)
    return angle.cos().to(dtype), angle.sin().to(dtype)


cases = []
shapes = ((1, 1, 1, 1), (1, 1, 7, 13), (2, 3, 7, 16), (3, 1, 10, 8), (2, 2, 1, 5), (1, 2, 9, 40))
for b, h, s, half in shapes:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        d = 2 * half
        cos, sin = angles(s, half, dtype)
        layouts = {
            "contiguous": torch.randn(b, h, s, d),
            "transposed": torch.randn(b, s, h, d).transpose(1, 2),
            "batch inside": torch.randn(h, s, b, d).permute(2, 0, 1, 3),
            "elements outside": torch.randn(d, s, h, b).permute(3, 2, 1, 0),
            "some heads": torch.randn(b, h + 2, s, d)[:, 1:-1],
            "some columns": torch.randn(b, h, s, d + 3)[..., 1 : d + 1],
            "every other": torch.randn(b, 2 * h, 2 * s, 2 * d)[:, ::2, ::2, ::2],
            "one for all": torch.randn(1, 1, 1, 1).expand(b, h, s, d),
            "batch expanded": torch.randn(1, h, s, d).expand(b, h, s, d),
            "position expanded": torch.randn(b, h, 1, d).expand(b, h, s, d),
        }
        for name, x in layouts.items():
            x = x.to(dtype) if 0 in x.stride() or x.is_contiguous() else x.to(dtype=dtype, memory_format=torch.preserve_format)
            cases.append((f"{name} {(b, h, s, half)}", (x, cos, sin)))
        whole = torch.randn(b, h + 1, s, d + 3).to(dtype)
        cases.append(("a part", (whole[:, 1:, :, 2 : d + 2], cos, sin)))
        cases.append(("turned angles", (whole[:, 1:, :, :d], cos.t().contiguous().t(), sin[:1].expand(s, half))))
        cases.append(("one tensor twice", (whole[:, :h, :, 3:], cos, cos)))

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
