"""Witness of matmul_split_slots.py: exit 0 if ordinary inputs are right and the fault shows."""
import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

here = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("matmul_split_slots", here / "matmul_split_slots.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel = module.triton_matmul
TOL = {torch.float32: 2e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}
DTYPES = [getattr(torch, d) for d in op.DTYPES]
ok = True


def wide(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def error(inputs, out=None):
    """Largest error over 1 + |expected|; a NaN or Inf of one side only is infinite."""
    want = op.reference(*map(wide, inputs))
    out = kernel(*inputs) if out is None else out
    assert out.shape == want.shape and out.dtype == inputs[0].dtype
    got, want = out.double().flatten(), want.flatten()
    same = (got == want) | (got.isnan() & want.isnan())
    e = torch.where(same, 0.0, (got - want).abs() / (1 + want.abs())).nan_to_num(float("inf"), float("inf"))
    return e.max().item() if e.numel() else 0.0


def ordinary(inputs, label):
    global ok
    e = error(inputs)
    good = e <= TOL[inputs[0].dtype]
    ok &= good
    print(f"ordinary {label}: {e:.3g} {'right' if good else 'WRONG'}")


def faulty(inputs, label, out=None):
    global ok
    e = error(inputs, out)
    bad = e > 3 * TOL[inputs[0].dtype]
    ok &= bad
    print(f"fault {label}: {e:.3g} {'shows' if bad else 'NOT SHOWN'}")


def draw(shape, dtype=torch.float32, seed=0):
    return op.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(seed))


for n, shape in enumerate([(64, 64, 64), (7, 5, 13), (65, 127, 129), (3, 31, 1025), (127, 65, 257), (256, 256, 256), (16, 16, 2048)]):
    for dtype in DTYPES:
        ordinary(draw(shape, dtype, n), f"{shape} {dtype}")

for k in (600, 1025, 2500, 3000, 4096):
    ordinary(draw((33, 20, k)), f"k {k}, growing")
for dtype in DTYPES:
    ordinary(draw((16, 24, 2048), dtype), f"k 2048 {dtype}")
    faulty(draw((16, 24, 1100), dtype), f"k 1100 after 2048 {dtype}")

sys.exit(0 if ok else 1)
