"""Features computed under torch.no_grad(), then a layer that is trained on them."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_inference_tensor.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return relu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

x = torch.randn(7, 1000)
out = call(x)
print("ordinary error", difference(out, expect((x,))), "inference", out.is_inference())

with torch.no_grad():
    features = call(x)
    expected = relu.reference(x)
print("error under no_grad", difference(features, expected.double()))
weight = torch.randn(3, 1000, requires_grad=True)
torch.nn.functional.linear(expected, weight).sum().backward()  # torch's relu will do
failures = []
for action in ("train", "write"):
    try:
        if action == "train":
            torch.nn.functional.linear(features, weight).sum().backward()
        else:
            features.add_(1.0)
    except RuntimeError as e:
        failures.append(action)
        print(action, "-", str(e)[:80])
wrong = len(failures) == 2 and features.is_inference() and not expected.is_inference()
print("WRONG" if wrong else "right", failures)
sys.exit(0 if wrong else 1)
