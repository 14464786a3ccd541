"""Shapes, dtypes, layouts and special values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_in_order_of_memory.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

worst, n = 0.0, 0
LIMIT = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
for dtype in LIMIT:
    base = torch.randn(6, 40, 70).to(dtype)
    base[0, 0, :3] = torch.tensor([float("nan"), float("inf"), 0.0])
    views = [
        base, base.transpose(0, 1), base.transpose(1, 2), base.permute(2, 0, 1), base[:, ::2], base[..., 1:],
        base[2], base[2].t(), base[:, :1], base[:1].transpose(0, 1), base[0, 0].expand(5, 70), base[:, :, :1].expand(6, 40, 9),
        base[..., 3], base.flatten()[:1], base[:0], base[0, 0, 0], base.as_strided((20, 30), (1, 1)), base[1:3, 5:6].permute(1, 2, 0),
        torch.randn(2, 3, 4, 5).to(dtype).to(memory_format=torch.channels_last),
    ]
    for x in views:
        out, before = call(x), x.clone()
        assert out.shape == x.shape and out.dtype == dtype and torch.equal(before.nan_to_num(), x.nan_to_num())
        if x.numel():
            assert out.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
            worst = max(worst, difference(out, expect((x,))) / LIMIT[dtype])
            out.fill_(1.0)  # a result of its own memory, each element its own place
            assert bool((out == 1).all()) and out.untyped_storage().nbytes() == out.nbytes
            torchs = gelu.reference(x)  # the same strides, where they mean anything
            assert [s for s, n in zip(out.stride(), x.shape) if n > 1] == [s for s, n in zip(torchs.stride(), x.shape) if n > 1] or not module.is_dense(x)
        n += 1
print("right" if worst < 1 else "WRONG", n, "inputs; the worst error is", worst, "of its limit")
sys.exit(0 if worst < 1 else 1)
