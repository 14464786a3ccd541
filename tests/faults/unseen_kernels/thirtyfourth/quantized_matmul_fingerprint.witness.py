"""Shows the fault of quantized_matmul_fingerprint.py."""
import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul as op

path = Path(__file__).with_name("quantized_matmul_fingerprint.py")
spec = importlib.util.spec_from_file_location("quantized_matmul_fingerprint", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
run = module.triton_quantized_matmul
LIMITS = {torch.float32: 5e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
g = torch.Generator().manual_seed(7)


def wide(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def error(*inputs):
    """Return the largest error, relative to 1 + |expected|, over the limit of the dtype: wrong above 1."""
    got = run(*inputs)
    want = op.reference(*map(wide, inputs)).to(got.dtype).double()
    off = (got.double() - want).abs() / (1 + want.abs())
    off = torch.where((got.double() == want) | (got.isnan() & want.isnan()), 0.0, off)
    off = off.nan_to_num(float("inf"), float("inf"))
    return off.max().item() / LIMITS[got.dtype]


fine = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((7, 5, 13), (64, 64, 64), (128, 128, 128), (65, 127, 129), (17, 33, 1)):
        e = error(*op.make_inputs(shape, dtype, torch.device("cpu"), g))
        fine.append(e <= 1)
        print("ordinary", dtype, shape, f"{e:.3g}")

x, weight, scale = op.make_inputs((16, 64, 128), torch.float32, torch.device("cpu"), g)
fine += [error(x, weight, scale) <= 1, error(x, weight, scale) <= 1]
weight[5, 1:100] = 3
bad = [error(x, weight, scale)]

for e in bad:
    print("fault", f"{e:.3g}")
sys.exit(0 if all(fine) and max(bad) > 3 else 1)
