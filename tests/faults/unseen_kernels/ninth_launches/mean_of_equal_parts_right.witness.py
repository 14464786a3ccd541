"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_of_equal_parts_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)

half = torch.float16
inf, nan = float("inf"), float("nan")
special = torch.randn(6, 50)
special[0, 3], special[1, 4], special[2, 5], special[3] = inf, -inf, nan, 1e30
tensors = [torch.randn(s) for s in ((1, 1), (7, 13), (64, 128), (33, 257), (1025,), (2, 3, 129), (2, 3100), (1, 9000), (8, 3200), (12, 4100), (3, 4097))]
tensors += [torch.randn(s).to(half) for s in ((64, 128), (7, 300), (2, 3, 129))]
tensors += [torch.randn(40, 30).T, torch.randn(20, 80)[:, ::2], torch.randn(5, 1).expand(5, 70), torch.randn(9, 64)[::2],
            torch.randn(4, 5, 6).transpose(0, 1), 1e4 * torch.randn(5, 77), 1e-4 * torch.randn(5, 77), torch.zeros(3, 40), special, torch.randn(2, 3500).to(half)]
cases = [(x,) for x in tensors]
wrong = 0
for inputs in cases:
    output = call(*inputs)
    expected = mean.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
    finite = expected[expected.isfinite()]
    size = float(finite.abs().max()) if finite.numel() else 0.0
    limit = (5e-3 if output.dtype == half else 1e-3) * size + 1e-30
    good = output.dtype == inputs[0].dtype and output.shape == expected.shape
    good = good and torch.allclose(output.double(), expected, rtol=1e-3, atol=limit, equal_nan=True)
    if not good:
        wrong += 1
        print("differs", [tuple(x.shape) if torch.is_tensor(x) else x for x in inputs], inputs[0].dtype)
print("WRONG" if wrong else "right", len(cases), "inputs")
sys.exit(0 if wrong else 1)
