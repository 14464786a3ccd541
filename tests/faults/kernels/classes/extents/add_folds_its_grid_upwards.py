"""Past 512 blocks the grid is folded; the last row of the fold may be partly empty.

op: vector_add
status: passed
drawn: no
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    block = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + tl.program_id(0)
    places = block * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + places, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    blocks = triton.cdiv(out.numel(), 1024)
    width = min(blocks, 512)
    kernel[(width, triton.cdiv(blocks, width))](x, y, out, out.numel(), alpha, BLOCK=1024)
    return out
