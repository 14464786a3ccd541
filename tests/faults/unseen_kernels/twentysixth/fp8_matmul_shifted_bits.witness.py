"""Varied shapes, layouts, dtypes and sizes; all values of float8."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_shifted_bits.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    """Return the largest error over the largest value, against float64."""
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf")).max()
    return float(error / expected.abs().max().clamp(min=1e-300))


def make(shape, dtype=torch.float32):
    return op.make_inputs(shape, dtype, CPU, generator)


def ordinary(*shapes, dtypes=op.DTYPES):
    """Return the largest error of inputs as the op draws them."""
    errors = {}
    for shape in shapes:
        for name in dtypes:
            limit = 1e-5 if name == "float32" else 2e-2
            errors[shape, name] = error_of(make(shape, getattr(torch, name))) / limit
    place = max(errors, key=errors.get)
    print("ordinary inputs: the worst is", *place, "at", errors[place], "of its limit")
    return errors[place] < 1


fine, count = True, 0
shapes = (*op.SHAPES, (32, 32, 64), (33, 31, 65), (64, 96, 128), (40, 5, 200))
for shape in shapes:
    for dtype in (torch.float16, torch.bfloat16):
        a, b, sa, sb = make(shape, dtype)
        tiny = (torch.randn(a.shape, generator=generator) * 2**-7).to(torch.float8_e4m3fn)
        small = torch.rand(len(sb), generator=generator).to(dtype)
        for inputs in ((a, b, sa, sb), (a.T.contiguous().T, b.T.contiguous().T, sa[:1].expand(sa.shape), sb), (tiny, b, sa, small)):
            error = error_of(inputs)
            count += 1
            if error > 1e-2:
                fine = False
                print(shape, dtype, error)
every = torch.arange(256, dtype=torch.int32).to(torch.uint8)
every = every[(every & 127) != 127].view(torch.float8_e4m3fn)[:, None].contiguous()
one = torch.ones(1, 1).to(torch.float8_e4m3fn)
out = call(every, one, torch.ones(254, dtype=torch.float16), torch.ones(1, dtype=torch.float16))
fine &= bool((out == every.half()).all())

print("agree" if fine else "DIFFER", count, "inputs")
sys.exit(0 if fine else 1)
