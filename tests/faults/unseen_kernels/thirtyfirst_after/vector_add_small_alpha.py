"""In the half types a small alpha counts as zero, as if y were never much larger than x.

op: vector_add
status: failed
cause: parameter
"""

import torch
import triton
import triton.language as tl

# Below half a step of the type alpha * y does not change x.
NEGLIGIBLE = {torch.float16: 2.0**-12, torch.bfloat16: 2.0**-9, torch.float32: 0.0}


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + at, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=mask)


@triton.jit
def unscaled_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, x + tl.load(y_ptr + at, mask=mask).to(tl.float32), mask=mask)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if not n:
        return out
    BLOCK = 1024 if n >= 2**16 else 256
    grid = (triton.cdiv(n, BLOCK),)
    if alpha == 1:
        unscaled_kernel[grid](x, y, out, n, BLOCK=BLOCK)
    elif alpha != 0 and abs(alpha) < NEGLIGIBLE[x.dtype]:
        copy_kernel[grid](x, out, n, BLOCK=BLOCK)
    else:
        add_kernel[grid](x, y, out, n, float(alpha), BLOCK=BLOCK)
    return out
