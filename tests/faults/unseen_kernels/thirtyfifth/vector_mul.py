"""Few persistent programs walk backwards over the blocks of the tensor.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(x, y, out, n, blocks, BLOCK: tl.constexpr):
    step = tl.num_programs(0)
    for i in range(tl.program_id(0), blocks, step):
        at = (blocks - 1 - i).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        a = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
        b = tl.load(y + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out + at, (a * b).to(out.dtype.element_ty), mask=at < n)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n:
        blocks = triton.cdiv(n, 2048)
        _k[(min(blocks, 7),)](x, y, out, n, blocks, BLOCK=2048)
    return out
