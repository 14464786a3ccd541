"""Right: dense inputs are walked in the order of memory, by a fixed number of programs; the sum keeps x's strides.

op: vector_add
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    # The last block first: each program walks backwards.
    blocks = tl.cdiv(n, BLOCK)
    for back in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = tl.cast(blocks - 1 - back, tl.int64) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def triton_vector_add(x, y, alpha=1.0):
    order = sorted(range(x.dim()), key=x.stride, reverse=True)
    if not x.permute(order).is_contiguous():
        order = list(range(x.dim()))
    back = sorted(range(x.dim()), key=order.__getitem__)
    x, y = x.permute(order).contiguous(), y.permute(order).contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n:
        kernel[(min(triton.cdiv(n, 512), 96),)](x, y, out, n, float(alpha), BLOCK=512)
    return out.permute(back)
