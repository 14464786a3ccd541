"""Channels first, sliced, expanded and contiguous."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_channels_first.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs):
    expected = layer_norm.reference(*map(wide, inputs))
    output = call(*inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs_of(x, eps=1e-5):
    m = x.shape[-1]
    return x, torch.randn(m).to(x.dtype), torch.randn(m).to(x.dtype), eps


cases = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    image = torch.randn(2, 24, 6, 10).to(dtype) * 3 + 1
    views = [
        image.permute(0, 2, 3, 1),
        image.permute(0, 3, 2, 1),
        image[:, :, :, :7].permute(0, 2, 3, 1),
        image[:, :, ::2].permute(0, 2, 3, 1),
        image[:, ::2].permute(0, 2, 3, 1),
        image[:1].expand(3, -1, -1, -1).permute(0, 2, 3, 1),
        image.flatten(2).transpose(1, 2),
        image.flatten(2)[:, :, 5:40].transpose(1, 2),
        image,
        image[0],
        image[0, 0],
        image[0, 0, 0],
        image[:, :, :1, :1].permute(0, 2, 3, 1),
        image[:, :1].permute(0, 2, 3, 1),
        image.transpose(1, 2),
        torch.randn(3, 500).to(dtype),
        torch.randn(300).to(dtype).unfold(0, 32, 4),
    ]
    cases += [inputs_of(x, eps) for x, eps in zip(views, (1e-5, 1e-3, 1e-6) * 6)]

worst = 0.0
for inputs in cases:
    error = difference(inputs)
    limit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[inputs[0].dtype]
    if not error <= limit:
        print("WRONG", inputs[0].shape, inputs[0].stride(), inputs[0].dtype, error)
        sys.exit(1)
    worst = max(worst, error)
print("right,", len(cases), "inputs, worst error", worst)
