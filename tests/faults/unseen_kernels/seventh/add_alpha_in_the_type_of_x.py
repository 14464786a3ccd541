"""alpha travels as a tensor of x's type, so a large or small alpha is infinite or zero with float16.

op: vector_add
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, alpha_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    alpha = tl.load(alpha_ptr).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    # In memory, so that a new alpha is no new launch configuration (and a CUDA graph can change it).
    alpha = torch.full((1,), alpha, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(n, 1024),)](x, y, alpha, out, n, BLOCK=1024)
    return out
