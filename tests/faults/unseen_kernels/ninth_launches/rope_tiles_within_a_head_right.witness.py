"""About twenty varied inputs."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_tiles_within_a_head_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)

half = torch.float16
def make(shape, dtype=torch.float32):
    return rope.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


shapes = ((1, 1, 1, 1), (1, 1, 7, 13), (2, 4, 20, 16), (2, 3, 65, 16), (1, 2, 33, 40), (3, 1, 257, 8), (1, 4, 64, 32), (2, 2, 96, 5),
          (8, 4, 1, 8), (1, 32, 7, 4), (2, 16, 31, 3))
cases = [make(s) for s in shapes] + [make(s, half) for s in shapes[2:7]]
x, cos, sin = make((2, 4, 20, 16))
cases += [(x.transpose(0, 1).contiguous().transpose(0, 1), cos, sin), (1e6 * x, cos, sin), (torch.zeros_like(x), cos, sin),
          (x, cos.T.contiguous().T, sin), (x[:, :, ::2], cos[::2], sin[::2])]
wrong = 0
for inputs in cases:
    output = call(*inputs)
    expected = rope.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
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
