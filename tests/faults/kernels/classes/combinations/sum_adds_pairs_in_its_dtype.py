"""Two neighbours are added in the dtype of x before float32: two of 40,000 are infinite in float16.

op: sum
status: failed
cause: overflow
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, 2 * BLOCK):
        even = start + 2 * tl.arange(0, BLOCK)
        a = tl.load(x_ptr + row * n_cols + even, mask=even < n_cols, other=0.0)
        b = tl.load(x_ptr + row * n_cols + even + 1, mask=even + 1 < n_cols, other=0.0)
        acc += (a + b).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], BLOCK=512)
    return out
