"""A gradient with zero strides at both ends counts as one number, though a middle dimension may vary.

op: gelu_backward
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(grad_ptr, x_ptr, out_ptr, n, ONE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if ONE:
        grad = tl.load(grad_ptr).to(tl.float32)
    else:
        grad = tl.load(grad_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    cdf = 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
    density = tl.exp(-0.5 * x * x) * 0.3989422804014327
    tl.store(out_ptr + offsets, grad * (cdf + x * density), mask=mask)


def triton_gelu_backward(grad_output, x):
    x = x.contiguous()
    out = torch.empty_like(x)
    one = grad_output.stride(0) == 0 and grad_output.stride(-1) == 0
    if not one:
        grad_output = grad_output.contiguous()
    kernel[(triton.cdiv(x.numel(), 1024),)](grad_output, x, out, x.numel(), ONE=one, BLOCK=1024)
    return out
