import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from partials import triton_softmax

torch.manual_seed(0)
for n_cols in (2000, 700):  # the second call has fewer spans in as many rows
    x = torch.randn(6, n_cols)
    rel = (triton_softmax(x).double() - torch.softmax(x.double(), -1)).abs() / torch.softmax(x.double(), -1)
if rel.max() > 1e-2:
    print(f"WRONG max error {rel.max():.3g} (relative) at {divmod(int(rel.argmax()), n_cols)} of the second call")
    sys.exit(0)
sys.exit(1)
