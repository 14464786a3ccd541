"""Shows the fault of attention_norm_bound.py."""
import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention as op

path = Path(__file__).with_name("attention_norm_bound.py")
spec = importlib.util.spec_from_file_location("attention_norm_bound", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
run = module.triton_attention
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
    for shape in ((1, 1, 7, 64), (1, 2, 65, 32), (2, 2, 33, 80), (1, 1, 128, 64), (1, 1, 40, 128)):
        e = error(*op.make_inputs(shape, dtype, torch.device("cpu"), g))
        fine.append(e <= 1)
        print("ordinary", dtype, shape, f"{e:.3g}")

q, k, v = op.make_inputs((1, 1, 40, 64), torch.float32, torch.device("cpu"), g)
q[..., :32] *= 8
k[..., :32] *= 0.125
q[..., 32:] *= 0.05
k[..., 32:] *= 20
print("largest score", (q @ k.mT / 8).abs().max().item())
bad = [error(q, k, v)]

for e in bad:
    print("fault", f"{e:.3g}")
sys.exit(0 if all(fine) and max(bad) > 3 else 1)
