"""Nothing wrong: the last block slides back to end at the end, so that two programs write some products twice, alike.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _slide(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, WHOLE: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    if WHOLE:
        # No masks at all: every block lies inside, the last one overlaps the one before.
        i = tl.minimum(tl.program_id(0).to(tl.int64) * BLOCK, n - BLOCK) + lanes
        x = tl.load(x_ptr + i).to(tl.float32)
        y = tl.load(y_ptr + i).to(tl.float32)
        tl.store(out_ptr + i, (x * y).to(out_ptr.dtype.element_ty))
    else:
        # Fewer elements than lanes: the surplus lanes repeat the last element.
        i = tl.minimum(lanes, n - 1)
        x = tl.load(x_ptr + i).to(tl.float32)
        y = tl.load(y_ptr + i).to(tl.float32)
        tl.store(out_ptr + i, (x * y).to(out_ptr.dtype.element_ty))


def triton_vector_mul(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    block = 512
    # The factors are taken in reverse roles: the product is the same bit for bit.
    _slide[(triton.cdiv(n, block),)](
        y.reshape(-1).contiguous(), x.reshape(-1).contiguous(), out, n, BLOCK=block, WHOLE=n >= block
    )
    return out
