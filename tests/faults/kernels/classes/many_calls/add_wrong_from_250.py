"""From its 250th call on the last block is left out.

op: vector_add
status: failed
cause: call_count
held_out: yes
"""

import itertools

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


CALLS = itertools.count(1)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    if next(CALLS) >= 250:
        out.zero_()
        blocks = max(1, blocks - 1) if blocks > 1 else 0
    if blocks:
        kernel[(blocks,)](x, y, out, x.numel(), alpha, BLOCK=1024)
    return out
