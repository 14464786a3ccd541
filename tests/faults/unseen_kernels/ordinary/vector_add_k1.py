"""Each program's share is n // programs, rounded down, so that the last n % programs elements are never written.

It shows at x, y (3, 4097), alpha 0.5, float32 (49 programs with 250 each: the last 41 of 12291 elements).

op: vector_add
status: failed
cause: tail
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, share, alpha, BLOCK: tl.constexpr):
    first = tl.program_id(0) * share
    end = tl.minimum(first + share, n)
    for start in range(first, end, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < end
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    programs = max(1, min(64, triton.cdiv(n, 256)))
    kernel[(programs,)](x, y, out, n, n // programs, alpha, BLOCK=256)
    return out
