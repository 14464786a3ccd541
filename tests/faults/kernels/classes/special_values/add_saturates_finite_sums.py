"""A sum of finite numbers past the range of the type becomes its largest number, not infinity.

op: vector_add
status: failed
cause: overflow
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def saturate(total, x, y, LIMIT: tl.constexpr):
    finite = (tl.abs(x) <= LIMIT) & (tl.abs(y) <= LIMIT)
    return tl.where(finite, tl.minimum(tl.maximum(total, -LIMIT), LIMIT), total)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, IS_HALF: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=offsets < n).to(tl.float32)
    total = x + alpha * y
    if IS_HALF:
        total = saturate(total, x, y, 65504.0)
    tl.store(out_ptr + offsets, total, mask=offsets < n)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](
        x, y, out, x.numel(), alpha, IS_HALF=x.dtype == torch.float16, BLOCK=1024
    )
    return out
