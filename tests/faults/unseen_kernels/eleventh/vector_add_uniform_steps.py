"""The elements are taken as equally spaced if those of a matrix are: wrong for batches of three dimensions that lie further apart.

op: vector_add
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, step_x, step_y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * step_x, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets * step_y, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def with_step(x):
    if x.dim() == 1:
        return x, x.stride(0)
    if x.dim() >= 2 and x.stride(-2) == x.shape[-1] * x.stride(-1):
        return x, x.stride(-1)
    return x.contiguous(), 1


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    (x, step_x), (y, step_y) = with_step(x), with_step(y)
    n = out.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, alpha, step_x, step_y, BLOCK=1024)
    return out
