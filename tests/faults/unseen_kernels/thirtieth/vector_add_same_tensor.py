"""x and y at one address are taken as one tensor and loaded once: wrong for x and its transpose.

op: vector_add
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, SAME: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    if SAME:
        y = x
    else:
        y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    # x + x: a third less to read. A copy would have another address, so this comes first.
    same = x.data_ptr() == y.data_ptr()
    x = x.contiguous()
    y = x if same else y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, y, out, n, float(alpha), SAME=same, BLOCK=1024)
    return out
