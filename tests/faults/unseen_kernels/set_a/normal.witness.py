import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from normal import triton_layer_norm
from torch.nn import functional as F

torch.manual_seed(0)
x = (torch.randn(6, 200) * 0.005).half()
w, b = torch.randn(200).half(), torch.randn(200).half()
want = F.layer_norm(x.double(), (200,), w.double(), b.double(), 1e-6)
err = (triton_layer_norm(x, w, b, 1e-6).double() - want).abs()
if err.max() > 0.1:
    print(f"WRONG max error {err.max():.3g} at {divmod(int(err.argmax()), 200)}")
    sys.exit(0)
sys.exit(1)
