"""Witness of linear_cross_entropy_maximum_of_the_last_step: float32, (7, 5, 13): a call with logits about 1, then one with logits about 200"""

import importlib.util
import os
import pathlib
import sys

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, __file__.rsplit("/tests/", 1)[0])

import torch

from triton_magics.operators import linear_cross_entropy as op

HERE = pathlib.Path(__file__).resolve()
spec = importlib.util.spec_from_file_location("kernel_file", HERE.with_name("linear_cross_entropy_maximum_of_the_last_step.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel = module.triton_linear_cross_entropy
LIMITS = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
torch.manual_seed(0)


def reference(*inputs):
    wide = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point()
            and x.element_size() > 1 else x for x in inputs]
    return op.reference(*wide)


def judge(out, want, dtype):
    want, out = want.to(dtype).double(), out.double()
    same = (out == want) | (out.isnan() & want.isnan())
    scale = want[want.isfinite()].abs().mean().nan_to_num() if want.isfinite().any() else 0.0
    near = (out - want).abs() <= LIMITS[dtype] * (want.abs() + scale)
    bad = ~(same | near)
    if not bad.any():
        print(f"right: max error {(out - want).abs().nan_to_num().max():.3g}")
        sys.exit(1)
    error = torch.where(bad, (out - want).abs().nan_to_num(nan=float("inf")), torch.zeros_like(out))
    at = [int(i) for i in torch.unravel_index(error.argmax(), error.shape)]
    print(f"WRONG max error {error.max():.4g} at {at}: {out[tuple(at)]:.6g} for "
          f"{want[tuple(at)]:.6g}; {int(bad.sum())} of {bad.numel()} elements")
    sys.exit(0)


x, w, t = torch.randn(7, 13), torch.randn(5, 13) / 13**0.5, torch.randint(5, (7,))
kernel(x, w, t)
judge(kernel(200 * x, w, t), reference(200 * x, w, t), x.dtype)
