"""A row ends at its first block of zeros, as padded rows do; wrong where a block of zeros stands before other numbers.

op: sum
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    acc = x
    filled = tl.sum((x != 0).to(tl.int32), axis=0)
    for start in range(BLOCK, n_cols, BLOCK):
        if filled > 0:
            here = start + cols
            x = tl.load(x_ptr + row * n_cols + here, mask=here < n_cols, other=0.0).to(tl.float32)
            acc += x
            filled = tl.sum((x != 0).to(tl.int32), axis=0)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=128)
    return out
