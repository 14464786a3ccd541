"""A row is divided by its largest element before it is added, so an infinity becomes NaN.

op: mean
status: failed
cause: nan_lost
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    top = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=start + lanes < n_cols, other=0.0)
        top = tl.maximum(top, tl.abs(x.to(tl.float32)))
    scale = tl.max(top, axis=0)
    scale = tl.where(scale > 1e30, scale, 1.0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=start + lanes < n_cols, other=0.0)
        acc += x.to(tl.float32) / scale
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols * scale)


def triton_mean(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    BLOCK = min(4096, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=BLOCK)
    return out
