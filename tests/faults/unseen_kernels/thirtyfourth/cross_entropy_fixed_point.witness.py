"""Shows the fault of cross_entropy_fixed_point.py."""
import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy as op

path = Path(__file__).with_name("cross_entropy_fixed_point.py")
spec = importlib.util.spec_from_file_location("cross_entropy_fixed_point", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
run = module.triton_cross_entropy
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
    for shape in ((7, 13), (3, 1000), (24, 64), (9, 257), (1, 1)):
        e = error(*op.make_inputs(shape, dtype, torch.device("cpu"), g))
        fine.append(e <= 1)
        print("ordinary", dtype, shape, f"{e:.3g}")

logits, target = op.make_inputs((40, 8), torch.float32, torch.device("cpu"), g)
fine.append(error(logits * 100, target) <= 1)
bad = [error(logits * 400000, target)]
logits, target = op.make_inputs((210, 8), torch.float16, torch.device("cpu"), g)
bad.append(error((logits * 60000).clamp(-65000, 65000), target))

for e in bad:
    print("fault", f"{e:.3g}")
sys.exit(0 if all(fine) and max(bad) > 3 else 1)
