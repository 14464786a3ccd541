"""Witness of fp8_matmul_no_subnormal_bytes.py: a of about 0.008, below the normal numbers of float8.

Prints the errors on usual inputs, each in a fresh module, then the calls of the witness; exits 0 if
the last call is clearly wrong and the usual inputs are right, else 1.
"""

import importlib.util
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, __file__.rsplit("/tests/", 1)[0])

import torch  # noqa: E402
from triton_magics.operators import fp8_matmul as op  # noqa: E402

KERNEL = Path(__file__).with_name("fp8_matmul_no_subnormal_bytes.py")
EPS = {torch.float32: 4e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


def fresh():
    spec = importlib.util.spec_from_file_location("kernel", KERNEL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.triton_fp8_matmul


def wide(x):
    is_wide = isinstance(x, torch.Tensor) and x.is_floating_point() and x.element_size() > 1
    return x.double() if is_wide else x


def error(inputs, out):
    """Return the largest error as a part of the largest value, and its place; NaN is infinite."""
    right = op.reference(*map(wide, inputs))
    off = (out.double() - right).abs()
    off = off.masked_fill((out.double() == right) | (out.isnan() & right.isnan()), 0)
    off = off.nan_to_num(nan=float("inf"), posinf=float("inf"))
    place = int(off.flatten().argmax()) if off.dim() else 0
    finite = right[right.isfinite()].abs()
    scale = float(finite.max()) if finite.numel() else 1.0
    at = [int(i) for i in torch.unravel_index(torch.tensor(place), right.shape)] if off.dim() else []
    return float(off.max()) / max(scale, 1e-30), at, float(out.flatten()[place]), float(right.flatten()[place])


def make(shape, dtype=torch.float32, seed=0):
    return op.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(seed))


def usual():
    return make((32, 32, 64), torch.float16), make((16, 64, 128), torch.bfloat16)


def witness():
    """Return the inputs of the calls, one after another; the last one is judged."""
    a, b, scale_a, scale_b = make((8, 8, 64), torch.float16)
    a = (a.float() / 8192).to(torch.float8_e4m3fn)
    return ((a, b, scale_a * 64, scale_b * 64),)


def main():
    fine = True
    for inputs in usual():
        e = error(inputs, fresh()(*inputs))[0]
        dtype = next(x.dtype for x in inputs[::-1] if isinstance(x, torch.Tensor) and x.dtype in EPS)
        fine &= e <= 2 * EPS[dtype]
        print(f"usual {tuple(inputs[0].shape)} {dtype}: error {e:.3g} of the largest value")
    run = fresh()
    for inputs in witness():
        out = run(*inputs)
    e, at, was, right = error(inputs, out)
    print(f"{'WRONG' if e > 0.03 else 'right'} max error {e:.3g} of the largest value at {at}: {was:.6g}, should be {right:.6g}")
    return 0 if fine and e > 0.03 else 1


if __name__ == "__main__":
    sys.exit(main())
