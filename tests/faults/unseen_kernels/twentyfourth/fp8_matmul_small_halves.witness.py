"""All float8 values, many shapes and layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_small_halves.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(output, *inputs):
    """Return the largest difference from the reference in float64, of the largest value."""
    expected = fp8_matmul.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(m, n, k, dtype=torch.float16):
    generator = torch.Generator().manual_seed(m)
    return fp8_matmul.make_inputs((m, n, k), dtype, torch.device("cpu"), generator)


codes = torch.arange(256, dtype=torch.uint8)
codes = codes[(codes & 0x7F) != 0x7F].view(torch.float8_e4m3fn)
one, scale = torch.ones(1, 1).to(torch.float8_e4m3fn), torch.ones(254).half()
inputs = codes[:, None], one, scale, scale[:1]
exact = bool((call(*inputs)[:, 0] == codes.half()).all())
errors = [0.0 if exact else 1.0]
for shape in (*fp8_matmul.SHAPES, (40, 70, 640), (33, 65, 333), (2, 3, 0)):
    for dtype in (torch.float16, torch.bfloat16):
        a, b, sa, sb = draw(*shape, dtype)
        small = 1e-3 if dtype == torch.float16 else 8e-3
        for scales in ((sa, sb), (sa.repeat_interleave(2)[::2], sb)):
            output = call(a, b, *scales)
            errors.append(error_of(output, a, b, *scales) / small * 1e-3)
a, b, sa, sb = draw(50, 50, 50)
for x, y in ((a.T, b), (a, b.T), (a[:, ::2], b[:, ::2]), (a[:1].expand(50, 50), b)):
    errors.append(error_of(call(x, y, sa, sb), x, y, sa, sb))
print("largest error", max(errors), "of", len(errors))
sys.exit(0 if max(errors) < 0.002 else 1)
