"""Witness of layer_norm_shared_shift.py: exit 0 if ordinary inputs are right and the fault shows."""
import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm as op

here = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("layer_norm_shared_shift", here / "layer_norm_shared_shift.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel = module.triton_layer_norm
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


for n, shape in enumerate([(4, 128), (7, 13), (3, 4097), (2, 3, 129), (64, 1000), (1025,), (256, 256), (1, 1)]):
    for dtype in DTYPES:
        ordinary(draw(shape, dtype, n), f"{shape} {dtype}")

x, *rest = draw((16, 512))
ordinary((x + 5000, *rest), "all rows at 5000")
x = x + 20000 * (torch.arange(16) % 3)[:, None]
faulty((x, *rest), "rows at 0, 20000, 40000")
x, *rest = draw((16, 512), torch.bfloat16)
x = (x.float() * 20 + (torch.arange(16) % 2)[:, None] * 1e5).to(x.dtype)
x[1::2] = torch.where(torch.arange(512) % 2 == 0, 100352.0, 99840.0).to(x.dtype)
print("bfloat16, for information:", error((x, *rest)))

sys.exit(0 if ok else 1)
