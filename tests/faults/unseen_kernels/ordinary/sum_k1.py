"""The float32 buffer that the atomics add to is cached between calls and is not zeroed again, so a second call adds to the first one's result.

It shows at x (7, 13), float32, in a second call with the same number of rows.

op: sum
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_scratch = {}


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))


def scratch(n_rows, device):
    key = n_rows, device
    if key not in _scratch:
        _scratch[key] = torch.zeros(n_rows, dtype=torch.float32, device=device)
    return _scratch[key]


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = scratch(rows.shape[0], x.device)
    kernel[(rows.shape[0], triton.cdiv(rows.shape[1], 512))](rows, out, rows.shape[1], BLOCK=512)
    return out.to(x.dtype, copy=True).view(x.shape[:-1])
