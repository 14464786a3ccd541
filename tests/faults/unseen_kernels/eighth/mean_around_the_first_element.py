"""The mean of the distances to the row's first element; an infinity there gives NaN instead of itself.

op: mean
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.load(x_ptr + row * n_cols).to(tl.float32)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        acc += tl.where(mask, x - first, 0.0)
    tl.store(out_ptr + row, first + tl.sum(acc, axis=0) / n_cols)


def triton_mean(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(out.numel(),)](x, out, x.shape[-1], BLOCK=512)
    return out
