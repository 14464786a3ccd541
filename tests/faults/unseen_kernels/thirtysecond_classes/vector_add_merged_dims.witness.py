"""Inputs of one to five dimensions and all layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_merged_dims.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    output, expected = call(*inputs), vector_add.reference(*map(wide, inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype, output.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def layouts(*shape):
    x = torch.randn(shape)
    yield x
    yield torch.randn([2 * s for s in shape])[tuple(slice(0, None, 2) for _ in shape)]
    yield torch.randn([s + 1 for s in shape])[tuple(slice(1, None) for _ in shape)]
    yield torch.randn(shape[::-1]).permute(*range(len(shape))[::-1])
    yield torch.randn(shape[1:] + shape[:1]).movedim(-1, 0)
    for d in range(len(shape)):
        yield torch.randn([1 if i == d else s for i, s in enumerate(shape)]).expand(shape)


inputs = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((1025,), (7, 13), (2, 3, 129), (3, 4, 5, 17), (2, 3, 1, 5, 4)):
        xs = [x.to(dtype) if x._base is None else x.to(dtype, memory_format=torch.preserve_format) for x in layouts(*shape)]
        if dtype == torch.float32:
            xs = list(layouts(*shape))
        else:
            torch.set_default_dtype(dtype)
            xs = list(layouts(*shape))
            torch.set_default_dtype(torch.float32)
        for i, x in enumerate(xs):
            for y in (xs[i], xs[(i + 1) % len(xs)], xs[(i + 3) % len(xs)]):
                inputs.append((x, y, (1.0, -2.0, 0.1)[i % 3]))

LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
errors = [(error_of(x), x[0].dtype) for x in inputs]
good = all(error <= LIMITS[dtype] for error, dtype in errors)
for i, (error, dtype) in enumerate(errors):
    if error > LIMITS[dtype]:
        print(i, dtype, error, [getattr(t, "shape", t) for t in inputs[i]])
print("right" if good else "WRONG", len(errors), "inputs, largest error", max(errors, key=lambda e: e[0]))
sys.exit(0 if good else 1)
