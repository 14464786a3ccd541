"""The gradient of a sum weighted by position, [batch, seq, hidden]."""

import importlib.util
import math
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_backward_scalar_gradient.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu_backward
torch.manual_seed(0)


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return gelu.reference(*wide)


def judge(output, expected):
    expected = expected.double()
    pairs = output.double().nan_to_num(nan=7e77), expected.nan_to_num(nan=7e77)
    error = torch.where(pairs[0] == pairs[1], 0.0, (pairs[0] - pairs[1]).abs())
    worst = float(error.max())
    usual = expected[expected.isfinite()].abs()
    size = float(usual.max()) if usual.numel() else 1.0
    wrong = worst > 0.02 * size
    print("WRONG" if wrong else "right", "max error", worst, "of values up to", size)
    sys.exit(0 if wrong else 1)


x = torch.randn(3, 20, 48)
weights, gradients = torch.rand(20), []
activations = (1.0 * x).requires_grad_()
activations.register_hook(gradients.append)
(activations.sum(dim=(0, 2)) * weights).sum().backward()
print("strides of the gradient that torch made:", gradients[0].stride())
leaf = x.double().requires_grad_()
gelu.reference(leaf).backward(gradients[0].double())
judge(call(gradients[0], x), leaf.grad)
