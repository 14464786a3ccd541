"""The output is half of x + |x|, which overflows for the largest numbers of float32.

op: relu
status: failed
cause: overflow
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    out = (x + tl.abs(x)) * 0.5
    out = tl.where(x == -float("inf"), 0.0, out)
    tl.store(out_ptr + offsets, out, mask=offsets < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    BLOCK = 4096 if n > 2**16 else 512
    kernel[(triton.cdiv(n, BLOCK),)](x, out, n, BLOCK=BLOCK)
    return out
