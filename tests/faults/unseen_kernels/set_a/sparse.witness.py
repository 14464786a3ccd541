import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from sparse import triton_vector_mul

torch.manual_seed(0)
x = torch.randn(16, 256)
x[5:9] = 0  # masked rows
y = torch.randn(16, 256)
y[6, 17] = float("inf")
y[7, 200] = float("nan")
got, want = triton_vector_mul(x, y).double(), x.double() * y.double()
bad = (got.isnan() != want.isnan()).nonzero()
if len(bad):
    print(f"WRONG max error nan at {bad[0].tolist()}: got {got[tuple(bad[0])]}, reference {want[tuple(bad[0])]}")
    sys.exit(0)
sys.exit(1)
