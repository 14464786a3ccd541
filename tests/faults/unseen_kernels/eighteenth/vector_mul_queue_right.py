"""Eight programs draw blocks from an atomic queue, from the end of the tensor to its beginning; the queue is new in each call.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, queue_ptr, n, blocks, BLOCK: tl.constexpr):
    ticket = tl.atomic_add(queue_ptr, 1)
    while ticket < blocks:
        at = (blocks - 1 - ticket).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, x * y, mask=at < n)
        ticket = tl.atomic_add(queue_ptr, 1)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    queue = torch.zeros(1, dtype=torch.int32, device=x.device)
    kernel[(8,)](x, y, out, queue, x.numel(), triton.cdiv(x.numel(), 512), BLOCK=512)
    return out
