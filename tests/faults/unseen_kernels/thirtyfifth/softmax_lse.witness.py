import importlib.util
import pathlib
import sys

import torch

from triton_magics.operators import softmax as op

path = pathlib.Path(__file__).with_name("softmax_lse.py")
spec = importlib.util.spec_from_file_location("softmax_lse", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel = module.triton_softmax
TOL = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}
gen = torch.Generator().manual_seed(0)
f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16


def wide(x):
    return x.double() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x


def error(*args):
    """Largest error over the tolerance: above 1 is wrong."""
    got = kernel(*args)
    want = op.reference(*map(wide, args))
    got64 = got.double()
    bad = ~torch.isclose(got64, want, rtol=TOL[got.dtype], atol=TOL[got.dtype] * FLOOR, equal_nan=True)
    rel = ((got64 - want).abs() / (TOL[got.dtype] * (want.abs() + FLOOR))).nan_to_num(float("inf"), float("inf"))
    return rel[bad].max().item() if bad.any() else 0.0


FLOOR = 1.0
ordinary = [error(*op.make_inputs(s, d, torch.device("cpu"), gen)) for s in [(1, 1), (7, 13), (16, 256), (2, 3, 129), (3, 1025)] for d in [f32, f16, bf16]]
print("softmax_lse ordinary", ordinary)
FLOOR = 1e-6
fault = [error(torch.randn(4, 100, generator=gen) + c) for c in (3e4, -1e5, 1e6)]
print("softmax_lse fault", fault)
sys.exit(0 if max(ordinary) == 0 and min(fault) > 2 else 1)
