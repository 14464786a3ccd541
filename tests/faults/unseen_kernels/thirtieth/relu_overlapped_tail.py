"""Right: no mask where there is a whole block; the last program starts earlier and writes some elements a second time, the same.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    # Three axes, as one of them may not be long enough; programs past the end have nothing to do.
    across = tl.num_programs(0).to(tl.int64)
    program = (tl.program_id(2) * 2 + tl.program_id(1)) * across + tl.program_id(0)
    first = program * BLOCK
    if first < n:
        lanes = BLOCK - 1 - tl.arange(0, BLOCK)
        if MASKED:
            x = tl.load(x_ptr + lanes, mask=lanes < n, other=-1.0)
            tl.store(out_ptr + lanes, tl.where(x < 0, 0.0, x), mask=lanes < n)
        else:
            at = tl.minimum(first, n - BLOCK) + lanes
            x = tl.load(x_ptr + at)
            tl.store(out_ptr + at, tl.where(x < 0, 0.0, x))


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        BLOCK = 1024
        across = triton.cdiv(triton.cdiv(n, BLOCK), 6) + 1
        kernel[(across, 2, 3)](x, out, n, MASKED=n < BLOCK, BLOCK=BLOCK)
    return out
