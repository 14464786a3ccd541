"""A y with stride 0 in its first dimension is taken for an expanded bias of the last dimension only: a [seq, dim] expanded over a batch repeats its first row.

op: vector_add
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, period, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at % period, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x = x.contiguous()
    period = n = x.numel()
    if y.dim() > 1 and y.stride(0) == 0 and y.stride(-1) == 1:
        # An expanded bias: its row is read again and again from the cache, never copied.
        period = y.shape[-1]
    else:
        y = y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, period, float(alpha), BLOCK=1024)
    return out
