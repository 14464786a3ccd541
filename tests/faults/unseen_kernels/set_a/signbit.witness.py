import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from signbit import triton_relu

torch.manual_seed(0)
x = torch.randn(40, 33)
x[3, 7] = -torch.tensor(float("nan"))  # a NaN with its sign bit set, as x86 makes of inf - inf
x.view(torch.int32)[9, 1] = -4194304  # 0xffc00000
got, want = triton_relu(x).double(), torch.relu(x.double())
bad = (got.isnan() != want.isnan()).nonzero()
if len(bad):
    print(f"WRONG max error nan at {bad[0].tolist()}: got {got[tuple(bad[0])]}, reference {want[tuple(bad[0])]}")
    sys.exit(0)
sys.exit(1)
