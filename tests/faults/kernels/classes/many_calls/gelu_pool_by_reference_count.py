"""An output is used again when nobody holds its object, though a view of it may be held.

op: gelu
status: failed
cause: reused_memory
round: second
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.70710678118654752)), mask=mask)


class Pool:
    """Outputs by shape; one that only the pool holds is free."""

    def __init__(self):
        self.tensors = []

    def take(self, like):
        for place in range(len(self.tensors)):
            if sys.getrefcount(self.tensors[place]) == 2:
                free = self.tensors[place]
                if free.shape == like.shape and free.dtype == like.dtype:
                    return free
        self.tensors = [*self.tensors[-7:], torch.empty_like(like)]
        return self.tensors[-1]


POOL = Pool()


def triton_gelu(x):
    x = x.contiguous()
    out = POOL.take(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
