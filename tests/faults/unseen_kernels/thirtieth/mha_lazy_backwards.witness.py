"""Shapes, dtypes, both masks, layouts, large scores that grow or shrink along the keys."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_lazy_backwards.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
errors = []


def see(*inputs):
    before = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    error = error_of(*inputs)
    errors.append(error / LIMITS[inputs[0].dtype])
    if errors[-1] >= 1:
        print(inputs[0].dtype, inputs[0].shape, inputs[0].stride(), inputs[1:][-1:], errors[-1])
    for x, y in zip(inputs, before, strict=True):
        assert not torch.is_tensor(x) or torch.equal(x.nan_to_num(), y.nan_to_num())


for dtype in (torch.float32, torch.float16):  # the interpreter has no bfloat16 in tl.dot
    for is_causal in (False, True):
        for shape in op.SHAPES[:-1]:
            see(*(torch.randn(shape).to(dtype) for _ in range(3)), is_causal)
        q, k, v = torch.randn(3, 2, 70, 3, 32).to(dtype).transpose(2, 3)
        see(q, k, v, is_causal)
        ramp = torch.linspace(0.01, 4, 70)[:, None]
        see(q, (k * ramp).to(dtype), v, is_causal)
        see(q, (k * ramp.flip(0)).to(dtype), v, is_causal)
        see((3 * q).to(dtype), (3 * k).to(dtype), v, is_causal)
        see(q, q, q, is_causal)
        see(q, k[:, :1].expand(2, 3, 70, 32), v, is_causal)

print(len(errors), "inputs, the largest error is", max(errors), "of the limit")
sys.exit(0 if max(errors) < 1 else 1)
