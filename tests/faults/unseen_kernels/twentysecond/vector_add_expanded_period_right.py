"""Leading dimensions of y with stride 0 are skipped, and the rest, if it is contiguous, is repeated.

op: vector_add
status: passed
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
    lead = 0
    while lead < y.dim() and (y.stride(lead) == 0 or y.shape[lead] == 1):
        lead += 1
    base = y[(0,) * lead] if n else y
    if n and base.is_contiguous():
        # An expanded y: what is repeated is read again and again from the cache, never copied.
        period = base.numel()
        y = base
    else:
        y = y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, period, float(alpha), BLOCK=1024)
    return out
