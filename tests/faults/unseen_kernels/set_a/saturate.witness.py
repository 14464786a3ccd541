import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from saturate import triton_gelu
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.rand(10, 200) + 3.001
x[5:] *= -1
got, want = triton_gelu(x).double(), F.gelu(x.double())
rel = (got - want).abs() / want.abs()
if rel.max() > 1e-3:
    print(
        f"WRONG max error {rel.max():.3g} (relative; absolute {(got - want).abs().max():.3g}) "
        f"at {divmod(int(rel.argmax()), 200)}; upper half {rel[:5].max():.3g}"
    )
    sys.exit(0)
sys.exit(1)
