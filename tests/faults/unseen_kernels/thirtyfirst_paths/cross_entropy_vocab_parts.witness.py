"""At least 32,768 classes, at most 16 rows, a target in the remainder after 16 parts of whole blocks of 1024."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_vocab_parts.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)
device = "cuda" if "cuda" in sys.argv else "cpu"
generator = torch.Generator(device).manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return cross_entropy.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(shape, dtype):
    return cross_entropy.make_inputs(shape, getattr(torch, dtype), device, generator)


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = [(f"{shape} {dtype}", draw(shape, dtype)) for shape in ((7, 13), (127, 129), (3, 4097), (100, 1), (1, 32768), (17, 4096))
            for dtype in ("float32", "float16", "bfloat16")]


def with_targets(shape, dtype):
    logits, target = draw(shape, dtype)
    target[:] = shape[1] - 1 - torch.arange(shape[0], device=device)
    logits.scatter_(1, target[:, None], 4.0)  # as of a trained model
    return logits, target


rare = [(f"last classes {shape} {dtype}", with_targets(shape, dtype)) for shape, dtype in (
    ((4, 50257), "float32"), ((1, 128256), "float16"), ((3, 40000), "bfloat16"))]

for label, inputs in ordinary:
    error = error_of(inputs)
    print("ordinary", label, "error", error)
    if error > 2e-2:
        sys.exit(2)
shows = True
for label, inputs in rare:
    error = error_of(inputs)
    print("WRONG" if error > 0.02 else "right", label, "error", error, "of the largest value")
    shows &= error > 0.02
sys.exit(0 if shows else 1)
