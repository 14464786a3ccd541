"""Many shapes and values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_packed_parts.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest difference from the reference in float64, in units of its largest value."""
    output = call(*inputs).double()
    expected = softmax.reference(*map(wide, inputs))
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = []
shapes = ((1, 1), (7, 13), (1, 1000), (1, 4097), (2, 3, 129), (1025,), (4, 513), (9, 1))
inf = float("inf")
for shape in shapes:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(shape)
        n = shape[-1]
        part = torch.arange(n // 2)
        values = {
            "random": x,
            "large": 10000 * x,
            "at 40000": 40000 + x,
            "at -40000": -40000 + x,
            "equal": torch.zeros(shape),
            "half of -inf": x.index_fill(-1, part, -inf),
            "every other -inf": x.index_fill(-1, torch.arange(0, n - 1, 2), -inf),
            "one is finite": torch.full(shape, -inf).index_fill(-1, torch.tensor([n - 1]), -3.0),
            "all -inf": torch.full(shape, -inf),
            "a NaN": x.index_fill(-1, torch.tensor([n // 3]), float("nan")),
            "an inf": x.index_fill(-1, torch.tensor([n // 3]), inf),
            "a ramp": torch.arange(x.numel()).reshape(shape) * 0.01,
            "far apart": x.index_add(-1, part, torch.full((*shape[:-1], len(part)), 200.0)),
        }
        cases += [(f"{name} {shape}", (value.to(dtype),)) for name, value in values.items()]
cases.append(("transposed", (torch.randn(700, 5).t(),)))
cases.append(("expanded", (torch.randn(5, 1).expand(5, 700),)))
cases.append(("largest of float32", (torch.full((2, 600), 3e38),)))

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
