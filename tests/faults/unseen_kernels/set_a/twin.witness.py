import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from twin import triton_vector_add

torch.manual_seed(0)
x = torch.randn(64, 64)
y = x.t()
got = triton_vector_add(x, y, 0.5).double()
want = torch.add(x.double(), y.double(), alpha=0.5)
err = (got - want).abs()
if err.max() > 1e-2:
    print(f"WRONG max error {err.max():.3g} at {divmod(int(err.argmax()), 64)}")
    sys.exit(0)
sys.exit(1)
