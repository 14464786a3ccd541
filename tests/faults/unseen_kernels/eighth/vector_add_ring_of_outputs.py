"""Outputs come from a ring of four buffers a shape; a fifth call overwrites the result of the first.

op: vector_add
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


class Ring:
    def __init__(self, like, length=4):
        self.buffers = [torch.empty(like.shape, dtype=like.dtype, device=like.device) for _ in range(length)]
        self.next = 0

    def take(self):
        buffer = self.buffers[self.next]
        self.next = (self.next + 1) % len(self.buffers)
        return buffer


RINGS = {}


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    key = (x.shape, x.dtype, x.device)
    if key not in RINGS:
        RINGS[key] = Ring(x)
    out = RINGS[key].take()
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), alpha, BLOCK=1024)
    return out
