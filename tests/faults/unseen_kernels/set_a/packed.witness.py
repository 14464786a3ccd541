import os

os.environ["TRITON_INTERPRET"] = "1"
import sys

import torch
from packed import triton_vector_add

torch.manual_seed(0)
worst = (0.0, None)
for step in range(12):  # as a training loop does: new activations each step, the allocator hands out old addresses
    x = torch.randn(96, 160).t()
    y = torch.randn(160, 96)
    err = (triton_vector_add(x, y, -2.0).double() - torch.add(x.double(), y.double(), alpha=-2.0)).abs()
    worst = max(worst, (float(err.max()), (step, *divmod(int(err.argmax()), 96))), key=lambda w: w[0])
    del x, y, err
# and a buffer that its owner fills again between two calls
a = torch.randn(96, 160).numpy()
y = torch.randn(160, 96)
for step in ("first", "second"):
    x = torch.from_numpy(a).t()
    err = (triton_vector_add(x, y).double() - (x.double() + y.double())).abs()
    worst = max(worst, (float(err.max()), (step, *divmod(int(err.argmax()), 96))), key=lambda w: w[0])
    a[:] = torch.randn(96, 160).numpy()
if worst[0] > 1e-2:
    print(f"WRONG max error {worst[0]:.3g} at {worst[1]}")
    sys.exit(0)
sys.exit(1)
