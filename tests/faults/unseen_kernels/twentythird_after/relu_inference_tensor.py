"""Under torch.no_grad() the result is made in inference mode: autograd refuses it afterwards, and so do writes in place.

op: relu
status: failed
cause: inference
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x <= 0, 0.0, x), mask=mask)  # NaN is not <= 0


def allocate(x):
    if torch.is_grad_enabled():
        return torch.empty_like(x)
    with torch.inference_mode():  # no version counter, no view tracking: a cheaper allocation
        return torch.empty_like(x)


def triton_relu(x):
    x = x.contiguous()
    out = allocate(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
