"""Witness of quantized_matmul_single_row_as_a_line: float32, (1, 5, 13): x is the first column of a (13, 4), transposed"""

import importlib.util
import os
import pathlib
import sys

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, __file__.rsplit("/tests/", 1)[0])

import torch

from triton_magics.operators import quantized_matmul as op

HERE = pathlib.Path(__file__).resolve()
spec = importlib.util.spec_from_file_location("kernel_file", HERE.with_name("quantized_matmul_single_row_as_a_line.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel = module.triton_quantized_matmul
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


x, w, s = torch.randn(13, 4)[:, :1].t(), torch.randint(-127, 128, (5, 13), dtype=torch.int8), torch.rand(5) / 127
judge(kernel(x, w, s), reference(x, w, s), x.dtype)
