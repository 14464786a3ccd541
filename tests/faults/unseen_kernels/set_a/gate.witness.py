import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from gate import triton_vector_mul

torch.manual_seed(0)
x = torch.randn(4, 6, 80)
y = torch.randn(4, 1, 80).expand(4, 6, 80)
got, want = triton_vector_mul(x, y).double(), x.double() * y.double()
err = (got - want).abs()
if err.max() > 1e-2:
    print(f"WRONG max error {err.max():.3g} at {[int(i) for i in torch.unravel_index(err.argmax(), err.shape)]}")
    sys.exit(0)
sys.exit(1)
