"""Shows the fault of fp8_matmul_subnormals.py."""
import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul as op

path = Path(__file__).with_name("fp8_matmul_subnormals.py")
spec = importlib.util.spec_from_file_location("fp8_matmul_subnormals", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
run = module.triton_fp8_matmul
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
for dtype in (torch.float16, torch.bfloat16):
    for shape in ((7, 5, 13), (64, 64, 64), (128, 128, 128), (65, 127, 129), (17, 33, 1)):
        e = error(*op.make_inputs(shape, dtype, torch.device("cpu"), g))
        fine.append(e <= 1)
        print("ordinary", dtype, shape, f"{e:.3g}")

a, b, sa, sb = op.make_inputs((33, 31, 64), torch.float16, torch.device("cpu"), g)
a = (torch.rand(33, 64, generator=g) * 0.015).to(a.dtype)
bad = [error(a, b, torch.full_like(sa, 40.0), sb)]

for e in bad:
    print("fault", f"{e:.3g}")
sys.exit(0 if all(fine) and max(bad) > 3 else 1)
